"""The user's folder for caches, one rule for all that the course keeps there."""

import os
from pathlib import Path


def user_cache() -> Path:
    """The course's folder in XDG_CACHE_HOME, or in ~/.cache where that isn't an absolute path.

    Raises:
        RuntimeError: there is no home directory, as for some users in containers.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return cache / "jax-course"
