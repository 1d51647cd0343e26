"""Count what XLA compiles, the one event that a timed region must not contain, or see it whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax
from jax.experimental.compilation_cache import compilation_cache

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


@contextmanager
def without_compilation_cache() -> Iterator[None]:
    """Switch JAX's persistent cache off inside a `with` block, so that compile times are whole.

    With the cache on, a program that some earlier run has compiled is only read from disk. The
    cache of jitted functions in memory stays as it is: jit a function anew to compile it anew.
    """
    enabled = jax.config.jax_enable_compilation_cache
    _enable_cache(False)
    try:
        yield
    finally:
        _enable_cache(enabled)


def _enable_cache(enabled: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", enabled)
    # JAX asks for that setting once per process; this makes it ask again.
    compilation_cache.reset_cache()
