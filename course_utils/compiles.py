"""Count what XLA compiles: the one event that a timed region must not contain."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax

# What JAX reports whenever it hands a program to XLA, also when a persistent cache answers.
_BACKEND_COMPILE = "/jax/core/compile/backend_compile_duration"
# Tracing and lowering are paid in the same call, before XLA starts.
_COMPILE_PHASES = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    _BACKEND_COMPILE,
)


@dataclass
class CompileCount:
    """Programs compiled so far (`count`) and the seconds spent tracing and compiling them."""

    count: int = 0
    seconds: float = 0.0


@contextmanager
def count_compiles() -> Iterator[CompileCount]:
    """Count the programs that JAX compiles inside a `with` block, helpers and eager ops included.

    Yields:
        A `CompileCount` that is up to date at every moment, also after the block.

    Example:
        >>> with count_compiles() as compiles:
        ...     jax.jit(lambda x: x + 1)(1.0)
        >>> compiles.count
        1
    """
    counter = CompileCount()

    def listen(event: str, duration: float, **_: object) -> None:
        if event in _COMPILE_PHASES:
            counter.seconds += duration
        if event == _BACKEND_COMPILE:
            counter.count += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield counter
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
