"""Keras 3 on its JAX backend: `fit`, as most people call it."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # before Keras is imported

import keras
import numpy as np

from benchmarks.problem import (
    EPSILON,
    LEARNING_RATE,
    SGD_RATE,
    WEIGHT_DECAY,
    Layers,
    Problem,
)


class Fit:
    """One `fit` over an epoch; `steps_per_execution` is how many steps make one program."""

    def __init__(
        self, problem: Problem, rule: str, rows: np.ndarray, steps_per_execution: str = "1"
    ) -> None:
        self.model = network(problem.layers)
        self.model.compile(
            optimizer=optimizer(rule),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            steps_per_execution=min(int(steps_per_execution), len(rows)),
        )
        pixels, labels = problem.stacks(rows)
        self.pixels, self.labels = pixels.reshape(-1, pixels.shape[-1]), labels.ravel()
        # Compared in the given order, timed with a new order each epoch.
        self.options = {"batch_size": rows.shape[1], "shuffle": rule == "adamw", "verbose": 0}

    def epoch(self) -> None:
        self.model.fit(self.pixels, self.labels, **self.options)

    def parameters(self) -> Layers:
        return [tuple(np.asarray(w) for w in layer.get_weights()) for layer in self.model.layers]


def network(layers: Layers) -> keras.Sequential:
    """Return the network with these parameters."""

    def gelu(x: keras.KerasTensor) -> keras.KerasTensor:
        return keras.activations.gelu(x, approximate=True)

    *hidden, last = (bias.size for _, bias in layers)
    model = keras.Sequential([keras.Input((layers[0][0].shape[0],))])
    for units in hidden:
        model.add(keras.layers.Dense(units, activation=gelu))
    model.add(keras.layers.Dense(last))
    model.set_weights([part for layer in layers for part in layer])
    return model


def optimizer(rule: str) -> keras.Optimizer:
    """Return Keras' optimizer of a rule."""
    if rule == "sgd":
        return keras.optimizers.SGD(SGD_RATE)
    return keras.optimizers.AdamW(LEARNING_RATE, weight_decay=WEIGHT_DECAY, epsilon=EPSILON)
