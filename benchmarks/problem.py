"""What all variants train: the same data, initial parameters, batch order and constants."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils import fashion_mnist

SIZES = (784, 256, 128, 10)
BATCH_SIZE = 512
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-4
EPSILON = 1e-8
# Plain gradient descent for the comparison: AdamW would hide a gradient of the wrong size.
SGD_RATE = 0.1
SGD_STEPS = 10

Layers = list[tuple[np.ndarray, np.ndarray]]  # W (n, m) and b (m,) of each layer


@dataclass(frozen=True, eq=False)
class Problem:
    """The data, and where training starts.

    Attributes:
        images, labels: uint8 (n, 28, 28) and (n,), the training part.
        rows: int32 (steps, batch), the order of an epoch; what fills no batch is left out.
        layers: the initial parameters, float32.
    """

    images: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    layers: Layers

    def stacks(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Batches as float32 (steps, batch, 784) in [0, 1] and int32 (steps, batch)."""
        pixels = self.images[rows].reshape(*rows.shape, -1).astype(np.float32) / np.float32(255)
        return pixels, self.labels[rows].astype(np.int32)

    def params(self) -> list[dict[str, Any]]:
        """The initial parameters in the form of the lessons: copies, for them to keep."""
        return [{"W": weight.copy(), "b": bias.copy()} for weight, bias in self.layers]


def load(batch_size: int = BATCH_SIZE, sizes: tuple[int, ...] = SIZES) -> Problem:
    """Return the same problem in every process that asks for it."""
    data = fashion_mnist.load()
    return make(data.train_images, data.train_labels, batch_size, sizes)


def make(
    images: np.ndarray, labels: np.ndarray, batch_size: int, sizes: tuple[int, ...]
) -> Problem:
    """Return the problem of training on `images` and `labels` with so many examples a step."""
    order = np.random.default_rng(0).permutation(len(images)).astype(np.int32)
    steps = len(images) // batch_size
    return Problem(
        images, labels, order[: steps * batch_size].reshape(steps, -1), initial_layers(sizes)
    )


def initial_layers(sizes: tuple[int, ...]) -> Layers:
    """He-scaled normal weights and zero biases, float32."""
    random = np.random.default_rng(1)
    return [
        (
            random.standard_normal((n, m), dtype=np.float32) * np.float32((2 / n) ** 0.5),
            np.zeros(m, np.float32),
        )
        for n, m in itertools.pairwise(sizes)
    ]
