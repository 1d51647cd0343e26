"""What a row of a group is: which class runs in which environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What somebody set for other programs, by its beginning. Here each library takes its own defaults for
# threads, precision and memory, and modules are compiled to bytecode once, as usual.
_OTHERS = (
    *("JAX_", "XLA_", "TORCH", "TF_", "KERAS_"),
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "NUMEXPR_"),
    *("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD", "PYTHONDONTWRITEBYTECODE"),
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
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OTHERS)}
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
