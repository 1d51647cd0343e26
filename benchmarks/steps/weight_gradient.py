"""Other ways to write the same step, in search of a faster gradient of the weights.

XLA's product of a transposed left side, `x.T @ g`, is slower on CPUs than a plain one. Each way here
avoids that differently; all compute the same, but for the two that say so.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.problem import Layers, Problem
from benchmarks.steps.jax_loops import Fused
from course_utils.models import mlp

Product = Callable[[jax.Array, jax.Array], jax.Array]
_SCALE, _CUBIC = (2 / np.pi) ** 0.5, 0.044715  # of GELU's approximation by tanh
_kept = jax.lax.optimization_barrier  # what comes out is in memory: XLA can't merge it away


def halves(x: jax.Array, g: jax.Array) -> jax.Array:
    """The sum over the batch in two parts."""
    half = len(x) // 2
    return x[:half].T @ g[:half] + x[half:].T @ g[half:]


def in_bfloat16(x: jax.Array, g: jax.Array) -> jax.Array:
    """Operands rounded to bfloat16, sums in float32: not the same numbers."""
    rounded = x.astype(jnp.bfloat16), g.astype(jnp.bfloat16)
    dimensions = (((0,), (0,)), ((), ()))
    return jax.lax.dot_general(*rounded, dimensions, preferred_element_type=jnp.float32)


def turned_first(weight: jax.Array) -> jax.Array:
    """The transpose, made before it is multiplied."""
    return _kept(weight.T)


# (x (B, n), g (B, m)) -> (n, m)
PRODUCTS: dict[str, Product] = {
    "swapped": lambda x, g: (g.T @ x).T,
    "activations-transposed": lambda x, g: _kept(x.T) @ g,
    "gradients-transposed": lambda x, g: (_kept(g.T) @ x).T,
    "halves": halves,
    "bfloat16": in_bfloat16,
}


def make_dense(
    product: Product, turn: Callable[[jax.Array], jax.Array] = jnp.transpose
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Return `x @ W` whose gradient of W is a product of our own, and that of x is `g @ turn(W)`."""
    dense = jax.custom_vjp(lambda x, weight: x @ weight)
    dense.defvjp(
        lambda x, weight: (x @ weight, (x, weight)),
        lambda kept, g: (g @ turn(kept[1]), product(kept[0], g)),
    )
    return dense


@jax.custom_vjp
def gelu(x: jax.Array) -> jax.Array:
    """GELU by tanh; the forward pass keeps the slope instead of what it takes to compute it."""
    return jax.nn.gelu(x)


def _gelu_and_slope(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    square = x * x
    tanh = jnp.tanh(_SCALE * x * (1 + _CUBIC * square))
    inner = _SCALE * (1 + 3 * _CUBIC * square)
    return 0.5 * x * (1 + tanh), 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner


gelu.defvjp(_gelu_and_slope, lambda slope, g: (slope * g,))


def make_loss(
    products: list[Product | None],
    activation: Callable = jax.nn.gelu,
    turn: Callable[[jax.Array], jax.Array] = jnp.transpose,
) -> Callable:
    """Return the loss of lesson 01 with products of one's own in each layer that has one."""
    layers = [make_dense(p, turn) if p else jnp.matmul for p in products]

    def loss(params: mlp.Params, batch: mlp.Batch) -> tuple[jax.Array, jax.Array]:
        hidden, labels = batch
        for dense, layer in zip(layers[:-1], params[:-1], strict=True):
            hidden = activation(dense(hidden, layer["W"]) + layer["b"])
        return judged(layers[-1](hidden, params[-1]["W"]) + params[-1]["b"], labels)

    return loss


def judged(logits: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean cross-entropy and accuracy."""
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, jnp.mean(jnp.argmax(logits, axis=-1) == labels)


def feature_major_loss(params: Any, batch: mlp.Batch) -> tuple[jax.Array, jax.Array]:
    """Hidden activations as (features, batch), weights as (out, in): no left side is transposed."""
    hidden, labels = batch
    hidden = hidden.T
    for layer in params[:-1]:
        hidden = jax.nn.gelu(layer["W"] @ hidden + layer["b"][:, None])
    return judged((params[-1]["W"] @ hidden + params[-1]["b"][:, None]).T, labels)


def bytes_first(images: jax.Array) -> jax.Array:
    """As `mlp.to_model_input`, but the batch is gathered as bytes before it is converted."""
    return mlp.to_model_input(_kept(images))


class Way(Fused):
    """The fused epoch with another loss; `name` says which."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray, name: str) -> None:
        self.name = name
        self.loss, self.prepare = way(name, len(problem.layers))
        super().__init__(problem, rule, rows)

    def initial(self, problem: Problem) -> Any:
        params = problem.params()
        return transposed(params) if self.name == "feature-major" else params

    def make_rule(self, rule: str) -> optax.GradientTransformation:
        return super().make_rule("sgd" if self.name == "bare" else rule)

    def parameters(self) -> Layers:
        layers = super().parameters()
        turned = self.name == "feature-major"
        return [(weight.T if turned else weight, bias) for weight, bias in layers]


def way(name: str, layers: int) -> tuple[Callable, Callable]:
    """Return the loss and the preparation of images of a way."""
    later = [None, *[PRODUCTS["activations-transposed"]] * (layers - 1)]
    if name in PRODUCTS:
        return make_loss([PRODUCTS[name]] * layers), mlp.to_model_input
    return {
        "feature-major": (feature_major_loss, mlp.to_model_input),
        "later-layers": (make_loss(later), mlp.to_model_input),
        "weights-transposed": (make_loss(later, turn=turned_first), mlp.to_model_input),
        "together": (make_loss(later, gelu, turned_first), bytes_first),
        "bare": (make_loss(later, jax.nn.relu), bytes_first),
    }[name]


def transposed(params: mlp.Params) -> mlp.Params:
    """The same parameters with weights as (out, in)."""
    return [{"W": layer["W"].T.copy(), "b": layer["b"]} for layer in params]
