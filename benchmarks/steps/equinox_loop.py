"""Equinox: a module, and a loop over a step under `filter_jit`."""

import equinox as eqx
import jax
import numpy as np
import optax

from benchmarks.problem import Layers, Problem
from benchmarks.steps.jax_loops import optimizer


class Network(eqx.Module):
    """Linear layers with GELU between them; Equinox keeps weights as (out, in)."""

    layers: list[eqx.nn.Linear]

    def __init__(self, layers: Layers) -> None:
        key = jax.random.key(0)
        self.layers = [
            eqx.tree_at(
                lambda linear: (linear.weight, linear.bias),
                eqx.nn.Linear(*weight.shape, key=key),
                (jax.numpy.asarray(weight.T), jax.numpy.asarray(bias)),
            )
            for weight, bias in layers
        ]

    def __call__(self, x: jax.Array) -> jax.Array:
        for linear in self.layers[:-1]:
            x = jax.nn.gelu(linear(x))
        return self.layers[-1](x)


def loss_and_accuracy(
    model: Network, images: jax.Array, labels: jax.Array
) -> tuple[jax.Array, jax.Array]:
    logits = jax.vmap(model)(images)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, (logits.argmax(-1) == labels).mean()


class Loop:
    """A list of batches on the device."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        chosen = optimizer(rule)
        self.model = Network(problem.layers)
        self.rule_state = jax.device_put(chosen.init(eqx.filter(self.model, eqx.is_array)))
        self.batches = [jax.device_put(pair) for pair in zip(*problem.stacks(rows), strict=True)]
        self.metrics: list[tuple[jax.Array, jax.Array]] = []

        @eqx.filter_jit
        def step(model, state, images, labels):
            compute = eqx.filter_value_and_grad(loss_and_accuracy, has_aux=True)
            metrics, grads = compute(model, images, labels)
            updates, state = chosen.update(grads, state, eqx.filter(model, eqx.is_array))
            return eqx.apply_updates(model, updates), state, metrics

        self.step = step

    def epoch(self) -> None:
        self.metrics = []
        for batch in self.batches:
            self.model, self.rule_state, metrics = self.step(self.model, self.rule_state, *batch)
            self.metrics.append(metrics)
        jax.block_until_ready((self.model, self.rule_state, self.metrics))

    def parameters(self) -> Layers:
        return [(np.asarray(x.weight).T, np.asarray(x.bias)) for x in self.model.layers]
