"""PyTorch: the eager loop, and the same with its forward and backward pass compiled."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.problem import (
    EPSILON,
    LEARNING_RATE,
    SGD_RATE,
    WEIGHT_DECAY,
    Layers,
    Problem,
)

LossAndAccuracy = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Eager:
    """The loop of PyTorch's own tutorials, with the fused AdamW and batches that stay in memory."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        self.model = network(problem.layers)
        self.optimizer = optimizer(self.model, rule)
        pixels, labels = problem.stacks(rows)
        batches = zip(torch.from_numpy(pixels), torch.from_numpy(labels).long(), strict=True)
        self.batches = list(batches)
        self.loss_and_accuracy = self.prepared()
        self.metrics: list[tuple[Tensor, Tensor]] = []

    def prepared(self) -> LossAndAccuracy:
        return self._loss_and_accuracy

    def _loss_and_accuracy(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        return loss, (logits.detach().argmax(-1) == labels).float().mean()

    def epoch(self) -> None:
        self.metrics = []
        for images, labels in self.batches:
            self.optimizer.zero_grad(set_to_none=True)
            loss, accuracy = self.loss_and_accuracy(images, labels)
            loss.backward()
            self.optimizer.step()
            self.metrics.append((loss.detach(), accuracy))

    def parameters(self) -> Layers:
        linear = [layer for layer in self.model if isinstance(layer, nn.Linear)]
        return [(layer.weight.detach().numpy().T, layer.bias.detach().numpy()) for layer in linear]


class Compiled(Eager):
    """torch.compile makes one program of the forward pass, and one of the backward pass."""

    def prepared(self) -> LossAndAccuracy:
        return torch.compile(self._loss_and_accuracy)


def network(layers: Layers) -> nn.Sequential:
    """Return the network with these parameters; GELU in the same approximation as jax.nn.gelu."""
    modules: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T.copy()))
            linear.bias.copy_(torch.from_numpy(bias))
        modules += [linear, nn.GELU(approximate="tanh")]
    return nn.Sequential(*modules[:-1])


def optimizer(model: nn.Module, rule: str) -> torch.optim.Optimizer:
    """Return PyTorch's optimizer of a rule, the fused one where there is one."""
    if rule == "sgd":
        return torch.optim.SGD(model.parameters(), lr=SGD_RATE)
    constants = {"lr": LEARNING_RATE, "eps": EPSILON, "weight_decay": WEIGHT_DECAY}
    return torch.optim.AdamW(model.parameters(), **constants, fused=True)
