"""Start N local JAX processes, watch them, and stop them all when one dies.

`launch` is what lessons call; `python -m course_utils.processes` is the same on a command line.
`worker` is a program to launch: it runs unchanged as a Kubernetes Indexed Job.
"""

from course_utils.processes.launching import launch
from course_utils.processes.outcome import Finished, ProcessFailed

__all__ = ["Finished", "ProcessFailed", "launch"]
