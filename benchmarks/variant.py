"""What a row of a group is: which class runs in which environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What somebody set for other programs. Here each library takes its own default, and modules are
# compiled to bytecode once, as usual.
_OTHERS = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_NUM_CPU_DEVICES",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PYTHONDONTWRITEBYTECODE",
    "XLA_FLAGS",
)


@dataclass(frozen=True)
class Variant:
    """One row of a group.

    Attributes:
        name: short and unique in its group.
        label: what people read.
        target: "module:Class" of what is made in the process.
        arguments: strings that the class is made with.
        needs: the package of a peer; where it isn't installed, the row says so.
        environment: variables for its process.
    """

    name: str
    label: str
    target: str
    arguments: tuple[str, ...] = ()
    needs: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def process_environment(self, scratch: Path) -> dict[str, str]:
        """What the process is started with: this one's environment, without its limits.

        `scratch` is a folder for all variants of a group; each finds it as BENCH_SCRATCH.
        """
        kept = {k: v for k, v in os.environ.items() if k not in _OTHERS}
        path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        ours = {
            "BENCH_SCRATCH": str(scratch),
            "JAX_PLATFORMS": "cpu",
            "KERAS_BACKEND": "jax",
            "KERAS_HOME": str(scratch / "keras"),
            "PYTHONPATH": os.pathsep.join(path),
            "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        }
        return {**kept, **ours, **self.environment}
