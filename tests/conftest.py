"""What every test shares: simulated devices, strict warnings and a compilation cache."""

import atexit
import os
import pkgutil
import shutil
import tempfile

import pytest

import course_utils

# Before any test imports JAX: unit tests run on simulated devices, wherever they run.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

# What a test solves, no participant has solved.
os.environ["JAX_COURSE_PROGRESS"] = "off"

# Lessons run in kernels of their own. There, too, a deprecation is an error, in their cells and
# in the course's modules.
_STRICT = [
    "__main__",
    *(module.name for module in pkgutil.walk_packages(course_utils.__path__, "course_utils.")),
]
os.environ["PYTHONWARNINGS"] = ",".join(f"error::DeprecationWarning:{name}" for name in _STRICT)

# A lesson is run several times, and most of a short run is compiling. Kernels share this cache.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _cache = tempfile.mkdtemp(prefix="jax-course-tests-")
    atexit.register(shutil.rmtree, _cache, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _cache
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A real IPython shell in this process, which leaves nothing in the home directory."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config({"HistoryManager": {"enabled": False}})
    yield InteractiveShell.instance(
        config=config, ipython_dir=str(tmp_path_factory.mktemp("ipython"))
    )
    InteractiveShell.clear_instance()
