"""Is this machine ready for the course? `make check`, or `quick()` in a notebook.

Each probe answers with one row: [OK], [WARN] or [FAIL], what was found, and the cure. Every
probe has a limit of time: one that hangs is a [FAIL]. JAX is only started in processes of
their own, so that a hang there can be ended, and nothing here holds on to a GPU.
"""

from course_utils.check.show import quick

__all__ = ["quick"]
