"""The step's matrix products alone: what the machine allows a step at most.

Three forward, three for the weights' gradients, two for the activations' (no gradient goes to the
pixels). The operands stay where they are from step to step, so caches help as much as they can.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.problem import Problem

Product = tuple[np.ndarray, np.ndarray, str]  # left, right, and which of them is transposed


def products(problem: Problem, batch_size: int) -> list[Product]:
    """Return the operands of all products of a step, as they lie in memory."""
    random = np.random.default_rng(2)

    def noise(width: int) -> np.ndarray:
        return random.standard_normal((batch_size, width), dtype=np.float32)

    found: list[Product] = []
    for number, (weight, _) in enumerate(problem.layers):
        inputs, grads = noise(weight.shape[0]), noise(weight.shape[1])
        found += [(inputs, weight, "neither"), (inputs, grads, "left")]
        if number:
            found.append((grads, weight, "right"))
    return found


def oriented(left: Any, right: Any, transposed: str) -> tuple[Any, Any]:
    """Return the two as the product takes them; no copy is made."""
    return left.T if transposed == "left" else left, right.T if transposed == "right" else right


class OnOpenBLAS:
    """By NumPy, into arrays that are there already."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        pairs = [oriented(*product) for product in products(problem, rows.shape[1])]
        self.work = [(left, right, left @ right) for left, right in pairs]
        self.steps = len(rows)

    def epoch(self) -> None:
        for _ in range(self.steps):
            for left, right, out in self.work:
                np.matmul(left, right, out=out)


class OnJAX:
    """By one program for all steps, as the fused epoch is one: what its compiler allows it.

    A transpose becomes a dimension to contract, as in a gradient.
    """

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        found = products(problem, rows.shape[1])
        names = [(id(left), id(right), transposed) for left, right, transposed in found]
        self.operands = jax.device_put(
            {id(a): a for left, right, _ in found for a in (left, right)}
        )

        def step(carry: Any, _: None) -> tuple[Any, None]:
            operands, number = carry
            for left, right, transposed in names:
                # A number of each product goes into the next: the compiler can neither leave one out
                # nor take it out of the loop, and they run in turn, as those of a step nearly do.
                operands |= {left: operands[left].at[0, 0].set(number)}
                done = jnp.matmul(*oriented(operands[left], operands[right], transposed))
                number = 1e-6 * jax.lax.optimization_barrier(done)[0, 0]
            return (operands, number), None

        @partial(jax.jit, donate_argnums=0)
        def program(operands: dict[int, jax.Array]) -> dict[int, jax.Array]:
            (operands, _), _ = jax.lax.scan(step, (operands, jnp.float32(0)), length=len(rows))
            return operands

        self.program = program

    def epoch(self) -> None:
        self.operands = jax.block_until_ready(self.program(self.operands))
