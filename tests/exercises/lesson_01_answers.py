"""Answers to the exercises of lesson 01."""

from types import SimpleNamespace

import jax
import numpy as np
import optax
from exercise_answers import Answers

from course_utils.models.mlp import init_params, loss_and_accuracy


def pure(loss_fn, params, batch, rate):
    (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


def hasty(loss_fn, params, batch, rate):
    grads, _ = jax.grad(loss_fn, has_aux=True)(params, batch)
    for layer, grad in zip(params, grads, strict=True):
        layer["W"] = layer["W"] - rate * grad["W"]
        layer["b"] = layer["b"] - rate * grad["b"]
    loss, _ = loss_fn(params, batch)
    return params, loss


def two_passes(loss_fn, params, batch, rate):
    loss, _ = loss_fn(params, batch)
    grads, _ = jax.grad(loss_fn, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


def loss_with_its_extra(loss_fn, params, batch, rate):
    loss, grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


def uphill(loss_fn, params, batch, rate):
    (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p + rate * g, params, grads), loss


def no_rate(loss_fn, params, batch, rate):
    (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - g, params, grads), loss


def only_gradients(loss_fn, params, batch, rate):
    (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
    return grads, loss


def other_way_round(loss_fn, params, batch, rate):
    return pure(loss_fn, params, batch, rate)[::-1]


def forgets_to_return(loss_fn, params, batch, rate):
    pure(loss_fn, params, batch, rate)


def only_parameters(loss_fn, params, batch, rate):
    return pure(loss_fn, params, batch, rate)[0]


def without_has_aux(loss_fn, params, batch, rate):
    loss, grads = jax.value_and_grad(loss_fn)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


def step_answers() -> Answers:
    device = jax.devices()[0]
    random = np.random.default_rng(0)
    batch = (random.random((8, 20), np.float32), random.integers(0, 10, 8, np.int32))
    params = jax.device_put(init_params(jax.random.key(1), [20, 6, 10]), device)
    return Answers(
        right=pure,
        wrong={
            "changed in place": hasty,
            "ran 2 times": two_passes,
            "isn't a single number": loss_with_its_extra,
            "up the gradient": uphill,
            "ignores `rate`": no_rate,
            "These are the gradients": only_gradients,
            "hasn't the tree": other_way_round,
            "returns nothing": forgets_to_return,
            "Return two things": only_parameters,
        },
        context={
            "loss_fn": loss_and_accuracy,
            "params": params,
            "batch": jax.device_put(batch, device),
        },
        secret=("jax.value_and_grad(", "jax.tree.map("),
        raises={"loss, grads = jax.value_and_grad(loss_fn)(params, batch)": without_has_aux},
    )


def compile_answers() -> Answers:
    given = step_answers().context
    wide = init_params(jax.random.key(2), [784, 6, 10])
    random = np.random.default_rng(0)
    batch = (random.random((8, 784), np.float32), random.integers(0, 10, 8, np.int32))
    device = jax.tree.leaves(given["params"])[0].device
    right = {"steady": 1, "falling": 2, "uncommitted": "count"}
    return Answers(
        right=right,
        wrong={
            "Not every call compiles": right | {"steady": 3, "falling": 3},
            "the first call compiles": right | {"steady": 0},
            "What should make the second call differ": right | {"steady": 2},
            "comes back committed": right | {"falling": 1},
            "what commits an array": right | {"uncommitted": "params"},
            "as committed as they are": right | {"uncommitted": "trace"},
        },
        context={
            "optimizers": {
                "steady": optax.sgd(0.1, momentum=0.9),
                "falling": optax.sgd(optax.exponential_decay(0.1, 100, 0.9), momentum=0.9),
            },
            "params": jax.device_put(wide, device),
            "batch": jax.device_put(batch, device),
        },
        secret=("'count'", '"count"', ".count"),
    )


def curve_answers() -> Answers:
    losses = {1: 2.4, 10: 1.9, 20: 1.3, 30: 1.1, 40: 0.9}
    right = {"step": 30, "updates": 29}
    return Answers(
        right=right,
        wrong={
            "There is such a row": {"step": None, "updates": None},
            "counts the rows": {"step": 4, "updates": 3},
            "an earlier row is, too": {"step": 40, "updates": 39},
            "still above half": {"step": 20, "updates": 19},
            "before its own update": {"step": 30, "updates": 30},
            "and nothing else has": {"step": 30, "updates": 3},
        },
        context={"log": [{"step": step, "loss": loss} for step, loss in losses.items()]},
        secret=("30", "29"),
    )


def bill_answers() -> Answers:
    timing = SimpleNamespace(examples_per_s=10_000.0, ms_per_step=10.0, compile_s=4.0)
    seconds = 30 * 6 + 4.0
    right = {"seconds": seconds, "price": seconds / 3600 * 0.8}
    return Answers(
        right=right,
        wrong={
            "one epoch, compilation aside": right | {"seconds": 6.0},
            "not in every epoch": right | {"seconds": 30 * (6 + 4.0)},
            "before the first step": right | {"seconds": 180.0},
            "multiplies two times": right | {"seconds": 1800.0},
            "are milliseconds": right | {"seconds": 180_000.0},
            "upside down": right | {"seconds": 1 / seconds},
            "per second": right | {"price": seconds * 0.8},
            "per minute": right | {"price": seconds / 60 * 0.8},
            "isn't that of so many seconds": right | {"price": 1.0},
        },
        context={"timing": timing, "images": 60_000, "epochs": 30, "price_per_hour": 0.8},
        secret=("184",),
    )


def answers() -> dict[str, Answers]:
    return {
        "01.1": step_answers(),
        "01.2": compile_answers(),
        "01.3": curve_answers(),
        "01.4": bill_answers(),
    }
