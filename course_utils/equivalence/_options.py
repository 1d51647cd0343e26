"""How a comparison was asked for."""

from dataclasses import dataclass

import jax

from course_utils.equivalence._placed import is_key


@dataclass(frozen=True)
class Options:
    """The arguments of `assert_equal_to_one_device` that aren't data.

    Attributes:
        rtol: the tolerated error, None for what the precision asks for.
        check_metrics: whether metrics are compared.
        stacked: whether all leaves lead with an axis of devices, as pmap's do.
        micro_batches: whether batches then lead with an axis of micro-batches.
        key: for steps that take one.
    """

    rtol: float | None = None
    check_metrics: bool = True
    stacked: bool = False
    micro_batches: bool = False
    key: jax.Array | None = None

    @property
    def leading(self) -> int:
        """How many axes of a batch lie before that of the examples."""
        return self.stacked + self.micro_batches

    def validate(self) -> None:
        """Raise TypeError for a key that isn't one."""
        old_style = getattr(self.key, "shape", None) == (2,) and self.key.dtype == "uint32"
        if self.key is not None and not old_style and not (is_key(self.key) and not self.key.ndim):
            raise TypeError(f"key must be one random key, jax.random.key(seed), not {self.key!r}.")
