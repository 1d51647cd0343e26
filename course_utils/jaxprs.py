"""Walk into the programs that a program's equations hold: loops, branches, jitted functions."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jax.extend.core import Jaxpr


def inner_jaxprs(params: Mapping[str, Any]) -> Iterator["Jaxpr"]:
    """Yield the jaxprs among the parameters of an equation, closed ones opened."""
    # Imported here: jax.extend brings Pallas along, and half of what importing the course costs.
    from jax.extend.core import ClosedJaxpr, Jaxpr

    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item
