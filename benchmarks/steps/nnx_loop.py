"""Flax NNX: its tutorial's loop over a jitted step."""

import jax
import numpy as np
import optax
from flax import nnx

from benchmarks.problem import Layers, Problem
from benchmarks.steps.jax_loops import optimizer


class Network(nnx.Module):
    """Linear layers with GELU between them."""

    def __init__(self, layers: Layers) -> None:
        rngs = nnx.Rngs(0)
        self.layers = nnx.List([nnx.Linear(*weight.shape, rngs=rngs) for weight, _ in layers])
        for linear, (weight, bias) in zip(self.layers, layers, strict=True):
            linear.kernel[...] = jax.numpy.asarray(weight)
            linear.bias[...] = jax.numpy.asarray(bias)

    def __call__(self, x: jax.Array) -> jax.Array:
        for linear in self.layers[:-1]:
            x = jax.nn.gelu(linear(x))
        return self.layers[-1](x)


def loss_and_accuracy(
    model: Network, images: jax.Array, labels: jax.Array
) -> tuple[jax.Array, jax.Array]:
    logits = model(images)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, (logits.argmax(-1) == labels).mean()


@nnx.jit
def train_step(
    model: Network, rule: nnx.Optimizer, images: jax.Array, labels: jax.Array
) -> tuple[jax.Array, jax.Array]:
    (loss, accuracy), grads = nnx.value_and_grad(loss_and_accuracy, has_aux=True)(
        model, images, labels
    )
    rule.update(model, grads)
    return loss, accuracy


class Loop:
    """A list of batches on the device; `cached_partial` spares NNX a look at the model each step."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        self.model = Network(problem.layers)
        self.rule = nnx.Optimizer(self.model, optimizer(rule), wrt=nnx.Param)
        self.step = nnx.cached_partial(train_step, self.model, self.rule)
        self.batches = [jax.device_put(pair) for pair in zip(*problem.stacks(rows), strict=True)]
        self.metrics: list[tuple[jax.Array, jax.Array]] = []

    def epoch(self) -> None:
        self.metrics = [self.step(*batch) for batch in self.batches]
        jax.block_until_ready((nnx.state((self.model, self.rule)), self.metrics))

    def parameters(self) -> Layers:
        return [(np.asarray(x.kernel[...]), np.asarray(x.bias[...])) for x in self.model.layers]
