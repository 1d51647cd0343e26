"""The JAX loops in three kinds of numbers, in one process, for `gpu`."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import equality
from benchmarks.figures import Rounds
from benchmarks.problem import SGD_STEPS, Problem
from benchmarks.steps import jax_loops, numpy_loop
from benchmarks.steps.timed import TIME
from benchmarks.steps.weight_gradient import judged
from course_utils.compiles import count_compiles
from course_utils.models import mlp

EXACT, BASE = "float32", "source loop, TF32"
# Label, type of the operands, precision of products (None: as JAX does it).
KINDS = (
    (EXACT, jnp.float32, "float32"),
    ("TF32", jnp.float32, None),
    ("bfloat16", jnp.bfloat16, None),
)
LOOPS = {
    "source loop": jax_loops.SourceLoop,
    "lesson 01": jax_loops.Lesson01,
    "fused epoch": jax_loops.Fused,
}
NOTE = (
    "TF32 is what JAX does with float32 on GPUs since Ampere unless told otherwise; elsewhere those "
    "rows are float32 too. The difference is that of the parameters after ten steps of plain gradient "
    "descent, to the same in float64, over what training changed; float32 is held to 3e-5."
)


def in_bfloat16(params: mlp.Params, batch: mlp.Batch) -> tuple[jax.Array, jax.Array]:
    """The loss of lesson 01 with weights and activations in bfloat16; the loss stays float32."""
    images, labels = batch
    low = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    return judged(mlp.predict(low, images.astype(jnp.bfloat16)).astype(jnp.float32), labels)


def differences(task: Problem) -> list[dict[str, Any]]:
    """Take the steps of plain gradient descent in every way; rows of `equality.differences`."""
    rows = task.rows[:SGD_STEPS]
    reference = numpy_loop.Loop(task, "sgd", rows, "float64")
    reference.epoch()
    found = {}
    for name, (make, precision) in _ways().items():
        with jax.default_matmul_precision(precision):
            way = make(task, "sgd", rows)
            way.epoch()
        found[name] = way.parameters()
    return equality.differences(task.layers, reference.parameters(), found)


def measure(task: Problem, rounds: int) -> Rounds:
    """Time an epoch of each way in turns, compiled beforehand."""
    ways = {}
    for name, (make, precision) in _ways().items():
        with jax.default_matmul_precision(precision):
            ways[name] = make(task, "adamw", task.rows), precision
            for _ in range(2):
                ways[name][0].epoch()
    found = []
    with count_compiles() as compiles:
        for number in range(rounds):
            turns = list(ways.items())[:: -1 if number % 2 else 1]
            found.append({name: _timed(*way, len(task.rows)) for name, way in turns})
    if compiles.count:
        raise RuntimeError(f"{compiles.count} programs were compiled while the clock ran")
    return found


def _timed(way: Any, precision: str | None, steps: int) -> dict[str, float]:
    with jax.default_matmul_precision(precision):
        start = time.perf_counter()
        way.epoch()
        return {TIME: 1000 * (time.perf_counter() - start) / steps}


def _ways() -> dict[str, tuple[Callable, str | None]]:
    """Every loop in every kind of numbers: how to make it, and the precision to run it with."""

    def low(loop: type) -> type:
        return type(f"Low{loop.__name__}", (loop,), {"loss": staticmethod(in_bfloat16)})

    return {
        f"{label}, {kind}": (loop if dtype == jnp.float32 else low(loop), precision)
        for label, loop in LOOPS.items()
        for kind, dtype, precision in KINDS
    }
