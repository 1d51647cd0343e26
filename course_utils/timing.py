"""Time a training step honestly: warm, blocked, repeated, and with its compiles counted."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from course_utils.compiles import count_compiles

Step = Callable[[Any, Any], tuple[Any, Any]]

# Simulated devices share the machine's threads. Steps that queue up there can starve a collective's
# rendezvous until XLA aborts the process: on a busy machine, five in flight were seen to do it.
_STEPS_IN_FLIGHT_WHEN_SIMULATED = 1


@dataclass(frozen=True)
class Timing:
    """What `measure` found.

    Attributes:
        ms_per_step: milliseconds per step, the median over the repeats.
        examples_per_s: examples per second, the median over the repeats.
        spread: (slowest - fastest) / median of the repeats, a fraction.
        compiles: programs compiled inside the timed regions; anything but 0 spoils the figures.
        compile_s: seconds spent tracing and compiling during the warm-up.
        samples_ms: milliseconds per step of each repeat, in order.
        state, metrics: what the last step returned.
    """

    ms_per_step: float
    examples_per_s: float
    spread: float
    compiles: int
    compile_s: float
    samples_ms: tuple[float, ...]
    state: Any = field(repr=False)
    metrics: Any = field(repr=False)

    def fraction_of(self, rate: float, flops_per_step: float) -> float:
        """This step's FLOP/s as a fraction of `rate` FLOP/s, such as `matmul_rate(dtype)`."""
        return flops_per_step / (self.ms_per_step / 1000) / rate


def measure(
    step: Step,
    state: Any,
    batches: Sequence[Any],
    *,
    warmup: int = 4,
    steps: int = 20,
    repeats: int = 3,
    examples: int | None = None,
) -> Timing:
    """Time `state, metrics = step(state, batch)` over `batches`, again and again.

    The warm-up runs at least `warmup` steps, then goes on until a round over every kind of
    batch (shape, dtype, placement) compiles nothing. The clock starts with nothing queued and
    stops when state and metrics are finished. Each repeat goes on where the last one stopped,
    so a step that donates its state is welcome; `state` itself must then not be used again.

    Args:
        step: takes (state, batch), returns (state, metrics); any pytrees.
        state: the first step's state.
        batches: used in order, over and over; pytrees whose leaves lead with the examples' axis.
        warmup: steps before the clock, at least.
        steps: steps per timed repeat.
        repeats: timed repeats; the figures are medians over them.
        examples: examples per step, where the leading axis doesn't tell.

    Raises:
        ValueError: no batches, or a count below one.
        TypeError: the step returns something else than a pair.
        RuntimeError: the step still compiles after many calls.
    """
    _validate(batches, warmup, steps, repeats)
    state, compile_s, block_every = _warm_up(step, state, batches, warmup)
    seconds: list[float] = []
    rates: list[float] = []
    with count_compiles() as compiles:
        for repeat in range(repeats):
            first = repeat * steps
            schedule = [batches[(first + i) % len(batches)] for i in range(steps)]
            elapsed, state, metrics = _timed(step, state, schedule, block_every)
            seen = sum(examples or _leading_axis(batch) for batch in schedule)
            seconds.append(elapsed)
            rates.append(seen / elapsed)
    median = statistics.median(seconds)
    return Timing(
        ms_per_step=1000 * median / steps,
        examples_per_s=statistics.median(rates),
        spread=(max(seconds) - min(seconds)) / median,
        compiles=compiles.count,
        compile_s=compile_s,
        samples_ms=tuple(1000 * s / steps for s in seconds),
        state=state,
        metrics=metrics,
    )


def matmul_rate(dtype: Any = jnp.float32, size: int | None = None) -> float:
    """FLOP/s that one device of this machine reaches on a large square matrix product.

    The median of `matmul_rates`, which also tells how far its repeats lie apart.

    Args:
        dtype: of both operands. On NVIDIA GPUs since Ampere float32 means TF32 here, as it does
            in any JAX program that doesn't raise the precision.
        size: rows and columns; by default large enough for the device to reach its best.
    """
    return statistics.median(matmul_rates(dtype, size))


def matmul_rates(dtype: Any = jnp.float32, size: int | None = None) -> tuple[float, ...]:
    """The FLOP/s of each repeat behind `matmul_rate`, in the order in which they ran."""
    on_cpu = jax.default_backend() == "cpu"
    size = size or (2048 if on_cpu else 8192)
    key_left, key_right = jax.random.split(jax.random.key(0))
    left = jax.random.normal(key_left, (size, size), dtype)
    # Scaled so that the products stay of the same size however often they are repeated.
    right = jax.random.normal(key_right, (size, size), dtype) / jnp.asarray(size**0.5, dtype)
    product = jax.jit(lambda x, matrix: (x @ matrix, ()))
    timing = measure(product, left, [right], warmup=2, steps=2 if on_cpu else 20, repeats=5)
    return tuple(2 * size**3 / (ms / 1000) for ms in timing.samples_ms)


def _validate(batches: Sequence[Any], warmup: int, steps: int, repeats: int) -> None:
    if not len(batches):
        raise ValueError("measure needs at least one batch; `batches` is empty.")
    for name, value in (("warmup", warmup), ("steps", steps), ("repeats", repeats)):
        if value < 1:
            raise ValueError(f"measure needs {name} >= 1, not {value}.")


def _warm_up(
    step: Step, state: Any, batches: Sequence[Any], at_least: int
) -> tuple[Any, float, int]:
    """Run until nothing compiles; return state, compile seconds, and how often to block."""
    kinds = list({_kind(batch): batch for batch in batches}.values())
    most = at_least + 10 * len(kinds)
    done = 0
    with count_compiles() as compiles:
        while True:
            before = compiles.count
            for batch in kinds:
                state, metrics = _run(step, state, batch)
                jax.block_until_ready((state, metrics))
                done += 1
            if done >= at_least and compiles.count == before:
                break
            if done > most:
                raise RuntimeError(
                    f"The step still compiles after {done} calls, so no honest time can be taken. "
                    "Something it takes changes at every call: a shape, a dtype, a Python value "
                    "marked static, or a function that is jitted anew inside the step."
                )
    simulated = _on_simulated_devices((state, metrics, kinds))
    return state, compiles.seconds, _STEPS_IN_FLIGHT_WHEN_SIMULATED if simulated else 0


def _timed(step: Step, state: Any, schedule: list[Any], block_every: int) -> tuple[float, Any, Any]:
    metrics = None
    jax.block_until_ready((state, schedule))
    start = time.perf_counter()
    for number, batch in enumerate(schedule, start=1):
        state, metrics = step(state, batch)
        if block_every and number % block_every == 0:
            jax.block_until_ready((state, metrics))
    jax.block_until_ready((state, metrics))
    return time.perf_counter() - start, state, metrics


def _run(step: Step, state: Any, batch: Any) -> tuple[Any, Any]:
    result = step(state, batch)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(
            f"measure needs a step that returns (state, metrics); it returned "
            f"{type(result).__name__}. Wrap it: lambda state, batch: (new_state, metrics)."
        )
    return result


def _kind(batch: Any) -> Any:
    """What decides whether a batch compiles anew: structure, shapes, dtypes and placements."""
    leaves, structure = jax.tree.flatten(batch)
    return structure, tuple(
        (jnp.shape(x), jnp.result_type(x), getattr(x, "sharding", None)) for x in leaves
    )


def _leading_axis(batch: Any) -> int:
    shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(batch)]
    if not shapes or not shapes[0]:
        raise ValueError(
            "measure can't tell how many examples a batch holds: its first leaf has no leading "
            "axis. Pass examples=<examples per step>."
        )
    return shapes[0][0]


def _on_simulated_devices(tree: Any) -> bool:
    arrays = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    return any(
        len(array.sharding.device_set) > 1
        and next(iter(array.sharding.device_set)).platform == "cpu"
        for array in arrays
    )
