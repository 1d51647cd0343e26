"""Kernels for lessons: of this very Python, and out of each other's way."""

import os

from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

LONGEST_SOCKET = 90  # sun_path has 104 bytes on macOS, 108 on Linux


class ThisPython(AsyncKernelManager):
    """Starts kernels with the Python that runs us.

    A kernelspec of the user's own may also be called python3, be found first, and start
    another Python with other packages.
    """

    @property
    def kernel_spec(self) -> KernelSpec:
        """The kernel of sys.executable."""
        return KernelSpec(**get_kernel_dict())


def manager_in(place: str) -> ThisPython:
    """A manager for one kernel whose sockets are files in `place`.

    Two runs that start at the same time cannot take each other's port then, and no other
    user of the machine can reach the kernel. A path may be too long for a socket.
    """
    connection = os.path.join(place, "kernel.json")
    files = os.name == "posix" and len(connection) < LONGEST_SOCKET
    return ThisPython(connection_file=connection, transport="ipc" if files else "tcp")
