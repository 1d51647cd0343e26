"""Walk into the programs that a program's equations hold: loops, branches, jitted functions."""

from collections.abc import Iterator, Mapping
from typing import Any


def inner_jaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the jaxprs among the parameters of an equation, closed ones opened.

    They are known by their equations, not by their class: the module that exports the class,
    jax.extend.core, takes as long to import as all of the course, and on JAX 0.12 its import has
    functions that are compiled already traced and compiled again.
    """
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(item, "jaxpr", item)
            if hasattr(inner, "eqns"):
                yield inner
