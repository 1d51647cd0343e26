"""NumPy: the passes written out by hand, on OpenBLAS. In float64 it is the judge of all others."""

import numpy as np

from benchmarks.problem import (
    EPSILON,
    LEARNING_RATE,
    SGD_RATE,
    WEIGHT_DECAY,
    Layers,
    Problem,
)

_SCALE, _CUBIC = (2 / np.pi) ** 0.5, 0.044715  # of GELU's approximation by tanh
_DECAYS = 0.9, 0.999  # of Adam's two averages


class Loop:
    """Forward, backward and update in place, on one vector of parameters."""

    def __init__(
        self, problem: Problem, rule: str, rows: np.ndarray, dtype: str = "float32"
    ) -> None:
        self.adamw = rule == "adamw"
        pixels, labels = problem.stacks(rows)
        self.batches = list(zip(pixels.astype(dtype, copy=False), labels, strict=True))
        flat = [part.ravel() for layer in problem.layers for part in layer]
        self.vector = np.concatenate(flat).astype(dtype)
        self.gradient = np.empty_like(self.vector)
        self.layers = _views(self.vector, problem.layers)
        self.gradients = _views(self.gradient, problem.layers)
        self.averages = np.zeros_like(self.vector), np.zeros_like(self.vector)
        self.count = 0
        self.metrics: list[tuple[float, float]] = []

    def epoch(self) -> None:
        self.metrics = []
        for images, labels in self.batches:
            inputs, slopes, logits = self._forward(images)
            self.metrics.append(self._backward(inputs, slopes, logits, labels))
            self._update()

    def parameters(self) -> Layers:
        return [(weight.copy(), bias.copy()) for weight, bias in self.layers]

    def _forward(self, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """Return each layer's input, the slopes of each GELU, and the logits."""
        inputs, slopes = [x], []
        for weight, bias in self.layers[:-1]:
            x, slope = _gelu(x @ weight + bias)
            inputs.append(x)
            slopes.append(slope)
        weight, bias = self.layers[-1]
        return inputs, slopes, x @ weight + bias

    def _backward(self, inputs, slopes, logits, labels) -> tuple[float, float]:
        """Fill the gradient; return loss and accuracy."""
        each = np.arange(len(labels))
        accuracy = float((logits.argmax(-1) == labels).mean())
        logits -= logits.max(-1, keepdims=True)
        grad = np.exp(logits)
        total = grad.sum(-1, keepdims=True)
        loss = float((np.log(total[:, 0]) - logits[each, labels]).mean())
        grad /= total
        grad[each, labels] -= 1
        grad /= len(labels)
        for i in reversed(range(len(self.layers))):
            np.matmul(inputs[i].T, grad, out=self.gradients[i][0])
            np.sum(grad, axis=0, out=self.gradients[i][1])
            if i:
                grad = grad @ self.layers[i][0].T
                grad *= slopes[i - 1]
        return loss, accuracy

    def _update(self) -> None:
        if not self.adamw:
            self.vector -= SGD_RATE * self.gradient
            return
        self.count += 1
        mean, square = self.averages
        mean *= _DECAYS[0]
        mean += (1 - _DECAYS[0]) * self.gradient
        square *= _DECAYS[1]
        square += (1 - _DECAYS[1]) * self.gradient**2
        step = np.sqrt(square / (1 - _DECAYS[1] ** self.count))
        step += EPSILON
        np.divide(mean / (1 - _DECAYS[0] ** self.count), step, out=step)
        step += WEIGHT_DECAY * self.vector
        self.vector -= LEARNING_RATE * step


def _gelu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """GELU by tanh, and its slope."""
    square = x * x
    tanh = np.tanh(_SCALE * x * (1 + _CUBIC * square))
    inner = _SCALE * (1 + 3 * _CUBIC * square)
    return 0.5 * x * (1 + tanh), 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner


def _views(vector: np.ndarray, layers: Layers) -> Layers:
    """The parts of one vector in the shapes of `layers`."""
    views, start = [], 0
    for layer in layers:
        parts = []
        for part in layer:
            parts.append(vector[start : start + part.size].reshape(part.shape))
            start += part.size
        views.append(tuple(parts))
    return views
