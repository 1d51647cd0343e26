"""Loops over one jitted step: the source lab's, lesson 01's, and lesson 10's fused epoch."""

from typing import Any

import jax
import numpy as np
import optax

from benchmarks.problem import (
    EPSILON,
    LEARNING_RATE,
    SGD_RATE,
    WEIGHT_DECAY,
    Layers,
    Problem,
)
from course_utils.models import fused_epoch, mlp


def optimizer(rule: str) -> optax.GradientTransformation:
    """Return Optax's optimizer of a rule."""
    if rule == "sgd":
        return optax.sgd(SGD_RATE)
    return optax.adamw(LEARNING_RATE, eps=EPSILON, weight_decay=WEIGHT_DECAY)


class _Loop:
    """What the JAX loops share: a committed state, and how to see its parameters."""

    loss = staticmethod(mlp.loss_and_accuracy)

    def __init__(self, problem: Problem, rule: str) -> None:
        self.rule = self.make_rule(rule)
        self.device = jax.devices()[0]
        self.state: Any = mlp.init_state(self.initial(problem), self.rule, self.device)
        self.metrics: Any = None

    def initial(self, problem: Problem) -> Any:
        return problem.params()

    def make_rule(self, rule: str) -> optax.GradientTransformation:
        return optimizer(rule)

    def parameters(self) -> Layers:
        return [(np.asarray(layer["W"]), np.asarray(layer["b"])) for layer in self.state[0]]


class SourceLoop(_Loop):
    """The source lab's: one stack of float32 batches on the device, indexed outside of jit."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        super().__init__(problem, rule)
        self.x_batches, self.y_batches = jax.device_put(problem.stacks(rows), self.device)
        self.step = mlp.make_train_step(self.loss, self.rule)

    def epoch(self) -> None:
        self.metrics = []
        for i in range(len(self.x_batches)):
            self.state, metrics = self.step(self.state, (self.x_batches[i], self.y_batches[i]))
            self.metrics.append(metrics)
        jax.block_until_ready((self.state, self.metrics))


class Lesson01(_Loop):
    """Lesson 01's: a list of batches, each an array of its own."""

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        super().__init__(problem, rule)
        stacks = zip(*problem.stacks(rows), strict=True)
        self.batches = [jax.device_put(batch, self.device) for batch in stacks]
        self.step = mlp.make_train_step(self.loss, self.rule)

    def epoch(self) -> None:
        self.metrics = []
        for batch in self.batches:
            self.state, metrics = self.step(self.state, batch)
            self.metrics.append(metrics)
        jax.block_until_ready((self.state, self.metrics))


class Fused(_Loop):
    """Lesson 10's: the epoch is one program over bytes. Timed it draws a new order each epoch."""

    prepare = staticmethod(mlp.to_model_input)

    def __init__(self, problem: Problem, rule: str, rows: np.ndarray) -> None:
        super().__init__(problem, rule)
        given = {} if rule == "adamw" else {"draw_rows": lambda *_: rows}
        self.data = jax.device_put((problem.images, problem.labels), self.device)
        self.keys = iter(jax.random.split(jax.random.key(0), 10_000))
        self.one_epoch = fused_epoch.make_epoch(
            self.loss, self.rule, rows.shape[1], self.prepare, **given
        )

    def epoch(self) -> None:
        self.state, self.metrics = self.one_epoch(self.state, next(self.keys), *self.data)
        jax.block_until_ready((self.state, self.metrics))
