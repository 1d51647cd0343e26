"""Training runs whose test accuracy is looked at on the way, with the clock stopped meanwhile."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import lesson_10, problem
from benchmarks.steps.jax_loops import optimizer
from course_utils import fashion_mnist
from course_utils.models import fused_epoch, mlp, recipe

TARGETS = (88, 89, 90)  # per cent
LAB_STEPS, LAB_EVERY = 400, 25
# Lesson 10 chose its recipe on validation data, with keys below this one.
FIRST_KEY = 1000
SECONDS, FINAL = "s in all", "test accuracy at the end, %"
Curve = list[tuple[float, float]]  # seconds of training, per cent of the test images


def to_reach(target: int) -> str:
    """Name the quantity: seconds of training until the test accuracy is `target` per cent."""
    return f"s to {target} %"


class Run:
    """One training from the first step to the last for each round, each with a key of its own."""

    def __init__(self, prepare: Callable[[jax.Array], jax.Array]) -> None:
        """`prepare` turns images as bytes into the network's input."""
        data = fashion_mnist.load()
        self.train: Any = data.train_images, data.train_labels
        self.test = jax.device_put((data.test_images, data.test_labels))
        self.keys = itertools.count(FIRST_KEY)
        self.curves: list[Curve] = []

        @jax.jit
        def accuracy(params: mlp.Params, images: jax.Array, labels: jax.Array) -> jax.Array:
            return jnp.mean(mlp.predict(params, prepare(images)).argmax(-1) == labels)

        self.accuracy = accuracy

    def prepare(self) -> None:
        """Compile, with a key that no round has."""
        self.run(jax.random.key(FIRST_KEY - 1))

    def round(self) -> dict[str, float]:
        curve = self.run(jax.random.key(next(self.keys)))
        self.curves.append(curve)
        return summary(curve)

    def facts(self) -> dict[str, Any]:
        return {"curves": self.curves}

    def run(self, key: jax.Array) -> Curve:
        """Train; look at the test images between the parts that are timed."""
        parts = self.parts(key)
        curve: Curve = []
        seconds = 0.0
        while True:
            start = time.perf_counter()
            params = next(parts, None)
            jax.block_until_ready(params)
            seconds += time.perf_counter() - start
            if params is None:
                return curve
            curve.append((seconds, 100 * float(self.accuracy(params, *self.test))))

    def parts(self, key: jax.Array) -> Iterator[mlp.Params]:
        """Train from this key on, and yield the parameters to judge after each part of it."""
        raise NotImplementedError


class SourceRecipe(Run):
    """The source lab's recipe, in its loop: AdamW at a constant rate, one order for all epochs."""

    def __init__(self, steps: str = str(LAB_STEPS)) -> None:
        super().__init__(mlp.to_model_input)
        self.steps = int(steps)
        whole = problem.make(*self.train, problem.BATCH_SIZE, problem.SIZES)
        self.batches = jax.device_put(whole.stacks(whole.rows))
        self.rule = optimizer("adamw")
        self.step = mlp.make_train_step(mlp.loss_and_accuracy, self.rule)

    def parts(self, key: jax.Array) -> Iterator[mlp.Params]:
        params = mlp.init_params(key, problem.SIZES)
        state = mlp.init_state(params, self.rule, jax.devices()[0])
        images, labels = self.batches
        for number in range(1, self.steps + 1):
            i = (number - 1) % len(images)
            state, _ = self.step(state, (images[i], labels[i]))
            if number % LAB_EVERY == 0:
                yield state[0]


class FusedRecipe(Run):
    """Lesson 10's recipe, an epoch at a time, for a run of so many epochs."""

    def __init__(self, epochs: str = "") -> None:
        """`epochs`: by default as many as the lesson's."""
        lesson = lesson_10.constants()
        prepare = recipe.standardiser(fashion_mnist.load().train_images)
        super().__init__(prepare)
        self.epochs = int(epochs or lesson["EPOCHS"])
        self.train = jax.device_put(self.train)
        steps = self.epochs * (len(self.train[0]) // problem.BATCH_SIZE)
        self.rule = recipe.make_optimizer(lesson["RECIPE"], steps)
        loss = recipe.make_loss(lesson["RECIPE"]["smoothing"])
        self.epoch = fused_epoch.make_epoch(loss, self.rule, problem.BATCH_SIZE, prepare)

    def parts(self, key: jax.Array) -> Iterator[mlp.Params]:
        start, *orders = jax.random.split(key, self.epochs + 1)
        params = mlp.init_params(start, problem.SIZES)
        state = mlp.init_state(params, self.rule, jax.devices()[0])
        for order in orders:
            state, _ = self.epoch(state, order, *self.train)
            yield recipe.settled(state)


def summary(curve: Curve) -> dict[str, float]:
    """What a run is judged by; a target that it didn't reach is left out."""
    reached = {
        to_reach(target): seconds
        for target in TARGETS
        for seconds in itertools.islice((s for s, found in curve if found >= target), 1)
    }
    return {SECONDS: curve[-1][0], FINAL: curve[-1][1], **reached}
