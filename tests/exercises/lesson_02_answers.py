"""Answers to the exercises of lesson 02."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
from exercise_answers import Answers

from course_utils.models.mlp import init_params

SIZES = [12, 8, 6, 10]
static = functools.partial(jax.jit, static_argnames="compute_dtype")


def given():
    random = np.random.default_rng(0)
    images = random.random((2, 8, 12), np.float32)
    labels = random.integers(0, 10, (2, 8), np.int32)
    params = jax.device_put(init_params(jax.random.key(1), SIZES), jax.devices()[0])
    batches = jax.device_put(list(zip(images, labels, strict=True)), jax.devices()[0])
    return params, batches


def forward(params, images, compute_dtype):
    *hidden, last = jax.tree.map(lambda x: x.astype(compute_dtype), params)
    x = images.astype(compute_dtype)
    for layer in hidden:
        x = jax.nn.gelu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def right_scores(params, images, compute_dtype):
    return forward(params, images, compute_dtype).astype(jnp.float32)


@static
def biases_left(params, images, compute_dtype):
    x = images.astype(compute_dtype)
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["W"].astype(compute_dtype) + layer["b"])
    last = params[-1]
    return (x @ last["W"].astype(compute_dtype) + last["b"]).astype(jnp.float32)


@static
def nothing_cast(params, images, compute_dtype):
    return right_scores(params, images, "float32")


@static
def no_hidden_activation(params, images, compute_dtype):
    x = images.astype(compute_dtype)
    for layer in jax.tree.map(lambda x: x.astype(compute_dtype), params):
        x = x @ layer["W"] + layer["b"]
    return x.astype(jnp.float32)


@static
def returns_nothing(params, images, compute_dtype):
    right_scores(params, images, compute_dtype)


@static
def misspelt(params, images, compute_dtype):
    return right_scores(params, images.astyp(compute_dtype), compute_dtype)


def gradients(params, batch, compute_dtype):
    def loss(params):
        logits = right_scores(params, batch[0], compute_dtype)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), batch[1][:, None], 1))

    return jax.grad(loss)(params)


def number_answers() -> Answers:
    right = {"gap above 256": 2, "updated": 1.0, "summed": 256}
    right |= {"1e30 is too large for": "float16"}
    return Answers(
        right=right,
        wrong={
            "step above 1": right | {"gap above 256": 2**-7},
            "That change is lost": right | {"gap above 256": 1},
            "how many times 1": right | {"gap above 256": 4},
            "first update alone": right | {"updated": 0},
            "last one has led": right | {"updated": 0.5},
            "where such a count ends": right | {"summed": 1000},
            "stop to matter": right | {"summed": 512},
            "and so its range": right | {"1e30 is too large for": "both"},
        },
        secret=("256 times",),
    )


def static_answers() -> Answers:
    params, batches = given()
    return Answers(
        right=static(right_scores),
        wrong={
            "takes `compute_dtype` for an array": jax.jit(right_scores),
            "Only `compute_dtype` is static": jax.jit(right_scores, static_argnums=(0, 1, 2)),
            "isn't jitted": right_scores,
            "still has a float32 factor": biases_left,
            "come out as bfloat16": static(forward),
            "nothing is cast": nothing_cast,
            "aren't the logits": no_hidden_activation,
            "returns nothing": returns_nothing,
        },
        context={"params": params, "images": batches[0][0]},
        secret=("static_argnames", "static_argnums", ".astype(jnp.float32)", "bias"),
        raises={"images.astyp(": misspelt},
    )


def fitting_answers() -> Answers:
    params, batches = given()
    right = {"dtype of a gradient": "float32", "one batch": "all fit"}
    right |= dict.fromkeys(("mean of two batches", "momentum", "new parameters"), "some don't")
    return Answers(
        right=right,
        wrong={
            "casts back": right | {"dtype of a gradient": "bfloat16"},
            "'one batch'": right | {"one batch": "some don't"},
            "'mean of two batches'": right | {"mean of two batches": "all fit"},
            "'momentum'": right | {"momentum": "all fit"},
            "'new parameters'": right | {"new parameters": "all fit"},
        },
        context={"gradients": gradients, "params": params, "batches": batches},
    )


def verdict_answers() -> Answers:
    def runs(slow, fast, batch=512):
        return {
            "float32": {"batch": 512, "ms": slow},
            "bfloat16": {"batch": batch, "ms": fast},
        }

    right = {"A": "faster", "B": "no difference", "C": "unfair", "D": "unfair", "here": 1.25}
    timings = {"float32": 800.0, "bfloat16": 1000.0}
    return Answers(
        right=right,
        wrong={
            "A: compare the medians": right | {"A": "slower"},
            "A: the batches are alike": right | {"A": "unfair"},
            "B: the repeats": right | {"B": "faster"},
            "C: before you compare": right | {"C": "faster"},
            "D: before you compare": right | {"D": "no difference"},
            "upside down": right | {"here": 0.8},
            "over float32's": right | {"here": 1.0},
        },
        context={
            "comparisons": {
                "A": runs([41.0, 40.2, 40.8], [29.8, 30.1, 30.4]),
                "B": runs([10.1, 12.4, 11.0], [10.4, 9.3, 10.0]),
                "C": runs([20.1, 20.2, 20.0], [12.0, 12.1, 12.2], batch=256),
                "D": runs([8.1, 8.0, 8.2], [412.0, 6.1, 6.2]),
            },
            "timings": {k: SimpleNamespace(examples_per_s=v) for k, v in timings.items()},
        },
        secret=("1.25",),
    )


def answers() -> dict[str, Answers]:
    return {
        "02.1": number_answers(),
        "02.2": static_answers(),
        "02.3": fitting_answers(),
        "02.4": verdict_answers(),
    }
