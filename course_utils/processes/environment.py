"""What a launched process is told through its environment, and the port they all meet at.

COORDINATOR_ADDRESS, PROCESS_COUNT and JOB_COMPLETION_INDEX say who is who: a Kubernetes Indexed
Job sets the last by itself. HEARTBEAT_SECONDS and INITIALIZATION_SECONDS are how long a silent
process is waited for, once it has come and before.
"""

import contextlib
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Plan:
    """Who takes part: the arguments of `launch` that concern the processes' environment."""

    processes: int
    devices: int
    port: int
    heartbeat: int
    initialization_timeout: int
    gpus: bool

    def environment(self, index: int, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of process `index`, made from the launcher's own."""
        told = {
            "COORDINATOR_ADDRESS": f"{LOOPBACK}:{self.port}",
            "PROCESS_COUNT": str(self.processes),
            "JOB_COMPLETION_INDEX": str(index),
            "HEARTBEAT_SECONDS": str(self.heartbeat),
            "INITIALIZATION_SECONDS": str(self.initialization_timeout),
            "PYTHONUNBUFFERED": "1",
        }
        devices = self._gpus(index, inherited) if self.gpus else self._cpus(inherited)
        return {**inherited, **_without_proxy(inherited), **told, **devices}

    def _cpus(self, inherited: Mapping[str, str]) -> dict[str, str]:
        # The older way to ask for simulated devices would contradict ours.
        flags = inherited.get("XLA_FLAGS", "")
        flags = re.sub(r"--xla_force_host_platform_device_count=\S*", "", flags).strip()
        return {
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": str(self.devices),
            "XLA_FLAGS": flags,
        }

    def _gpus(self, index: int, inherited: Mapping[str, str]) -> dict[str, str]:
        visible = inherited.get("CUDA_VISIBLE_DEVICES", "")
        every = visible.split(",") if visible else [str(i) for i in range(self.wanted)]
        if len(every) < self.wanted:
            raise ValueError(
                f"{self.processes} processes with {self.devices} GPUs each need {self.wanted}; "
                f"CUDA_VISIBLE_DEVICES={visible} shows {len(every)}."
            )
        own = every[index * self.devices : (index + 1) * self.devices]
        return {
            "JAX_PLATFORMS": "cuda",
            "CUDA_VISIBLE_DEVICES": ",".join(own),
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }

    @property
    def wanted(self) -> int:
        """Devices of all processes together."""
        return self.processes * self.devices


def _without_proxy(inherited: Mapping[str, str]) -> dict[str, str]:
    """Else gRPC asks a proxy for the way to this very machine, and JAX says that this may hang."""
    if not any("_proxy" in name.lower() for name in inherited):
        return {}
    return {"no_grpc_proxy": LOOPBACK, "JAX_CHECK_PROXY_ENVS": "false"}


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port of the loopback interface that the system gives to nobody else meanwhile.

    The coordinator may share it, for gRPC asks for SO_REUSEPORT as we do. That is also why a
    port of one's own choice is dangerous: two coordinators on it would share their workers.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((LOOPBACK, 0))
        yield reserved.getsockname()[1]
