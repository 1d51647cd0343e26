"""What a good recipe is made of, as lesson 10_ninety_percent builds it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from course_utils.models.mlp import predict

Prepare = Callable[[jax.Array], jax.Array]
Loss = Callable[[Any, Any], tuple[jax.Array, jax.Array]]


@jax.jit
def pixel_moments(images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of each pixel of uint8 images, two float32 (784,) in [0, 1]."""
    pixels = images.reshape(len(images), -1).astype(jnp.float32) / 255
    return pixels.mean(0), pixels.std(0)


def standardiser(images: Any, floor: float = 0.1) -> Prepare:
    """Learn mean and spread of each pixel; return the function that standardises other images.

    That function turns uint8 images (n, 28, 28) into float32 rows (n, 784), each pixel less its
    mean and divided by its standard deviation plus `floor`.

    Args:
        images: uint8 (n, 28, 28), the training part alone.
        floor: in units of the pixels' range; keeps pixels that are nearly always dark from
            counting more than all others where they are not. Above 0.
    """
    mean, spread = pixel_moments(images)

    def standardise(images: jax.Array) -> jax.Array:
        pixels = images.reshape(len(images), -1).astype(jnp.float32) / 255
        return (pixels - mean) / (spread + floor)

    return standardise


def make_schedule(kind: str, peak: float, steps: int) -> optax.Schedule:
    """Learning rate as a function of the step: "constant", "exponential" or "linear" after warm-up.

    The warm-up is a tenth of the `steps`, from a twentieth of `peak`. The exponential decay ends at a
    hundredth of `peak`, the linear one at 0.

    Raises:
        KeyError: another kind.
    """
    if kind == "constant":
        return optax.constant_schedule(peak)
    warmup = max(1, steps // 10)
    rest = max(1, steps - warmup)
    falls = {
        "exponential": optax.exponential_decay(peak, rest, decay_rate=0.01),
        "linear": optax.linear_schedule(peak, 0.0, rest),
    }
    rises = optax.linear_schedule(peak / 20, peak, warmup)
    return optax.join_schedules([rises, falls[kind]], [warmup])


def make_loss(smoothing: float) -> Loss:
    """Make the loss (params, batch) -> (cross-entropy with smoothed labels, accuracy).

    Both are float32 scalars; a batch is a pair of images (n, 784) and labels, int32 (n,). Without
    smoothing it is `mlp.loss_and_accuracy`.
    """

    def loss_fn(params: Any, batch: Any) -> tuple[jax.Array, jax.Array]:
        images, labels = batch
        logits = predict(params, images)
        targets = optax.smooth_labels(jax.nn.one_hot(labels, logits.shape[-1]), smoothing)
        loss = optax.softmax_cross_entropy(logits, targets).mean()
        return loss, jnp.mean(jnp.argmax(logits, axis=-1) == labels)

    return loss_fn


class Averaged(NamedTuple):
    """The state of the optimizer inside, and the running average of the parameters."""

    inner: optax.OptState
    average: Any


def averaged(optimizer: optax.GradientTransformation, decay: float) -> optax.GradientTransformation:
    """The same optimizer, whose state also keeps a running average of the parameters.

    After each step the average is `decay` of the old one and the rest of the new parameters; it
    starts at the initial parameters. `settled(state)` returns it.
    """

    def init(params: Any) -> Averaged:
        # A copy: a step that donates its state must not find one array in it twice.
        return Averaged(optimizer.init(params), jax.tree.map(jnp.copy, params))

    def update(grads: Any, state: Averaged, params: Any) -> tuple[Any, Averaged]:
        updates, inner = optimizer.update(grads, state.inner, params)
        stepped = optax.apply_updates(params, updates)
        return updates, Averaged(inner, optax.incremental_update(stepped, state.average, 1 - decay))

    return optax.GradientTransformation(init, update)


def settled(state: tuple[Any, Any]) -> Any:
    """The parameters to judge of a (params, optimizer state): their average, if there is one."""
    params, opt_state = state
    return opt_state.average if isinstance(opt_state, Averaged) else params


def make_optimizer(recipe: dict[str, Any], steps: int) -> optax.GradientTransformation:
    """The optimizer of a recipe for a run of so many steps.

    Args:
        recipe: "schedule" and "peak" as `make_schedule` takes them, "b2", "weight decay" and
            "nesterov" as `optax.adamw` does, "average" for `averaged`, or 0.
        steps: of the whole run, since the schedule has to know its end.
    """
    optimizer = optax.adamw(
        make_schedule(recipe["schedule"], recipe["peak"], steps),
        b2=recipe["b2"],
        weight_decay=recipe["weight decay"],
        nesterov=recipe["nesterov"],
    )
    return averaged(optimizer, recipe["average"]) if recipe["average"] else optimizer
