"""Exercise 07.2: a published loss with two mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function

IMAGES, CLASSES = 6, 10


@defined(
    "07.2",
    "Repair a published loss",
    kind="find the fault",
    trains=("find two mistakes in a published loss",),
    form=function("logits", "targets"),
    hints=(
        "Print the shape of `jax.nn.logsumexp(logits)` for logits of 8 images. And over how many "
        "numbers does `jnp.mean` run there?",
        "Each image has a sum over classes of its own, so one axis is summed; to subtract it from "
        "that image's row, the axis has to stay, with length 1. Then add up what is left of an "
        "image, and average over images.",
    ),
    right="Each image has its own probabilities, and the loss is a mean over images, whatever the "
    "number of classes. Changing one image and looking whether others notice is a good test.",
)
def repaired_loss(loss_fn: Callable) -> Iterator[tuple[Any, str]]:
    """Compare value and gradient with NumPy's, for logits of usual size and for large ones."""
    random = np.random.default_rng(7)
    logits = random.normal(size=(IMAGES, CLASSES)).astype(np.float32)
    targets = np.eye(CLASSES, dtype=np.float32)[random.integers(0, CLASSES, IMAGES)]
    returned = jax.eval_shape(loss_fn, logits, targets)
    yield returned is None, "Your function returns nothing: return the loss."
    yield (
        np.shape(returned) == (IMAGES,),
        "That is one loss for each image. What is trained with is their mean.",
    )
    yield np.shape(returned) != (), "The loss isn't a single number."
    both = jax.jit(jax.value_and_grad(loss_fn))
    found, grads = jax.device_get(both(logits, targets))
    wanted = _cross_entropy(logits, targets, axis=-1) / IMAGES
    for mistaken, message in _mistakes(logits, targets, wanted):
        yield np.isclose(found, mistaken, rtol=1e-4), message  # the nearest two differ by percents
    yield not np.isclose(found, wanted, rtol=1e-4), "That isn't the mean cross-entropy of images."
    steep = jax.tree.leaves(jax.device_get(both(1000 * logits, targets)))
    yield (
        not all(np.isfinite(x).all() for x in steep),
        "For these logits it is right. For large ones it isn't finite: a probability is rounded to "
        "0, or an exponential is too large. Stay with logarithms.",
    )
    away = (np.exp(logits - _logsumexp(logits, -1)) - targets) / IMAGES
    yield not np.allclose(grads, away, rtol=1e-3, atol=1e-6), "The value is right, its slope isn't."


def _mistakes(
    logits: np.ndarray, targets: np.ndarray, wanted: float
) -> Iterator[tuple[float, str]]:
    """What the loss is with each mistake, and what to say to it."""
    over_all = _cross_entropy(logits, targets, axis=None) / IMAGES
    yield over_all / CLASSES, "Nothing has changed yet: both mistakes are still in it."
    yield (
        wanted / CLASSES,
        "Each image has its own probabilities now. The second mistake is still in it.",
    )
    yield (
        over_all,
        "The mean is over images now. The first mistake is still in it: change the logits of one "
        "image, and the others' losses change.",
    )
    yield (
        wanted * IMAGES,
        "That is a sum over images: it grows with the batch, and the rate would have to shrink.",
    )
    yield -wanted, "The sign is wrong: training would make the right class less likely."
    yield (
        _cross_entropy(logits, targets, axis=0) / IMAGES,
        "The probabilities add up to one over the images, for each class. It is the other axis.",
    )


def _cross_entropy(logits: np.ndarray, targets: np.ndarray, axis: int | None) -> float:
    """Summed over the batch, with probabilities that add up to one over `axis`; None: over all."""
    return -float((targets * (logits - _logsumexp(logits, axis))).sum())


def _logsumexp(logits: np.ndarray, axis: int | None) -> np.ndarray:
    return np.log(np.exp(logits).sum(axis, keepdims=True))
