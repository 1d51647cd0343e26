"""A process that compiles the step of lesson 01, with the course's cache of compiled programs."""

import os
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import optax

from benchmarks.problem import BATCH_SIZE, LEARNING_RATE, SIZES, WEIGHT_DECAY
from course_utils.models import mlp

TRACE, COMPILE = "ms to trace and lower", "ms to compile"


class FirstStep:
    """From nothing to a program, once; `filled` says whether an earlier process may have kept it."""

    def __init__(self, filled: str) -> None:
        from course_utils.compilation_cache import keep_compiled_programs

        scratch = Path(os.environ["BENCH_SCRATCH"])
        folder = scratch / "kept" if filled == "filled" else tempfile.mkdtemp(dir=scratch)
        os.environ["XDG_CACHE_HOME"] = str(folder)
        if keep_compiled_programs() is None:
            raise RuntimeError("the cache of compiled programs can't be used here")

    def prepare(self) -> None:
        first_step()

    def round(self) -> dict[str, float]:
        return first_step()


def first_step() -> dict[str, float]:
    """Trace, lower and compile the step, and look at the clock."""
    optimizer = optax.adamw(LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    params = mlp.init_params(jax.random.key(1), SIZES)
    state = mlp.init_state(params, optimizer, jax.devices()[0])
    batch = jnp.zeros((BATCH_SIZE, SIZES[0])), jnp.zeros(BATCH_SIZE, jnp.int32)
    jax.block_until_ready((state, batch))
    start = time.perf_counter()
    lowered = mlp.make_train_step(mlp.loss_and_accuracy, optimizer).lower(state, batch)
    between = time.perf_counter()
    lowered.compile()
    end = time.perf_counter()
    return {TRACE: 1000 * (between - start), COMPILE: 1000 * (end - between)}
