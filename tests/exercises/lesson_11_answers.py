"""Answers to the exercises of lesson 11, proved as the lesson's own cells prove them."""

import ast
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from exercise_answers import Answers
from lesson_files import NOTEBOOKS, code_of

from course_utils.equivalence import example_keys

DEVICES = 3
# What runs a comparison or trains takes seconds; the check will run its own.
SLOW = {"compare", "proof", "train", "assert_equal_to_one_device", "prove_1", "prove_2", "prove_3"}
SLOW |= {"prove_4", "prove_5", "lower"}


def takes_long(statement: ast.stmt) -> bool:
    """Whether a statement at the top of a cell computes or shows what no check needs."""
    if isinstance(statement, ast.FunctionDef | ast.Import | ast.ImportFrom):
        return False
    if not isinstance(statement, ast.Assign) or isinstance(statement.targets[0], ast.Subscript):
        return True
    calls = [n.func for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return bool({getattr(f, "id", getattr(f, "attr", "")) for f in calls} & SLOW)


@functools.cache
def lesson() -> dict[str, Any]:
    """The names that the lesson's cells define, on three devices, in its test profile."""
    code = code_of(NOTEBOOKS / "11_bring_your_own_step.ipynb")
    code = code.replace('PROFILE = "auto"', 'PROFILE = "test"')
    code = code.replace("DEVICES = 0", f"DEVICES = {DEVICES}")
    before, _ = code.split("agreed = {")  # the last exercise; then comes the training
    tree = ast.parse(before)
    tree.body = [statement for statement in tree.body if not takes_long(statement)]
    names: dict[str, Any] = {"__name__": "lesson_11"}
    exec(compile(tree, "lesson 11", "exec"), names)
    return names


def spread(losses):
    mean = jax.lax.pmean(losses.mean(), "data")
    return jnp.sqrt(jax.lax.pmean(((losses - mean) ** 2).mean(), "data"))


def spread_answers() -> Answers:
    return Answers(
        right=spread,
        wrong={
            "mean of the devices' own spreads": lambda x: jax.lax.pmean(x.std(), "data"),
            "adds up the devices' own": lambda x: jax.lax.psum(x.std(), "data"),
            "measures from its own mean": lambda x: jnp.sqrt(jax.lax.pmean(x.var(), "data")),
            "the root is missing": lambda x: spread(x) ** 2,
            "something was added up": lambda x: spread(x) * DEVICES**0.5,
            "yours is varying": lambda x: x.std(),
            "a single number": lambda x: jnp.sqrt(
                jax.lax.pmean((x - jax.lax.pmean(x.mean(), "data")) ** 2, "data")
            ),
            "returns nothing": lambda x: None,
        },
        context={"mesh": lesson()["mesh"]},
        secret=("jax.lax.pmean(", "psum("),
    )


def with_reductions(reduce_loss, reduce_grads):
    """The gradients of desk 1 with other reductions."""

    def gradients(params, batch, key):
        names = lesson()
        kept = names["draw_on_mesh"](key, len(batch[1]))
        varying = jax.lax.pcast(params, "data", to="varying")
        gradient = jax.value_and_grad(names["mean_loss"], has_aux=True)
        (loss, _), grads = gradient(varying, batch, kept)
        return reduce_loss(loss), reduce_grads(grads)

    return gradients


def psum(tree):
    return jax.lax.psum(tree, "data")


def pmean(tree):
    return jax.lax.pmean(tree, "data")


def summed_answers() -> Answers:
    def divided_twice(grads):
        return jax.tree.map(lambda g: g / DEVICES, pmean(grads))

    right = with_reductions(pmean, pmean)
    return Answers(
        right=right,
        wrong={
            "is added up": with_reductions(pmean, psum),
            "once too often": with_reductions(pmean, divided_twice),
            "isn't the mean over all examples": with_reductions(psum, pmean),
            "is varying": with_reductions(pmean, lambda grads: grads),
            "Return two things": lambda *arguments: right(*arguments)[1],
            "hasn't the tree": lambda *arguments: right(*arguments)[::-1],
            "returns nothing": lambda params, batch, key: None,
        },
        context={"prove": lesson()["prove_1"]},
        secret=("jax.lax.pmean(", "pmean((loss"),
    )


def masked(params, padded, divide, reduce=psum):
    """Sum of the real losses and its gradient, divided by `divide(mask)`, and reduced."""
    batch, mask = padded

    def total(params):
        _, losses = lesson()["mean_loss"](params, batch)
        return (losses * mask).sum()

    varying = jax.lax.pcast(params, "data", to="varying")
    parts = jax.value_and_grad(total)(varying)
    return reduce(jax.tree.map(lambda x: x / divide(mask), parts))


def all_real(mask):
    return jax.lax.psum(mask.sum(), "data")


def own_real(mask):
    return jnp.maximum(mask.sum(), 1)


def with_divisor(divide, reduce=psum):
    return lambda params, padded, key: masked(params, padded, divide, reduce)


def mask_ignored(params, padded, key):
    gradient = jax.value_and_grad(lesson()["mean_loss"], has_aux=True)
    (loss, _), grads = gradient(jax.lax.pcast(params, "data", to="varying"), padded[0])
    return pmean((loss, grads))


def weighted_means(params, padded, key):
    """Right, but for a device without a real example: its mean is 0/0."""
    own = padded[1].sum()
    means = masked(params, padded, lambda mask: mask.sum(), lambda parts: parts)
    return psum(jax.tree.map(lambda mean: mean * own / psum(own), means))


def divided_after(params, padded, key):
    total, grads = masked(params, padded, lambda mask: 1)
    return total / padded[1].sum(), jax.tree.map(lambda g: g / padded[1].sum(), grads)


def mean_answers() -> Answers:
    return Answers(
        right=with_divisor(all_real),
        wrong={
            "Still a mean of means": with_divisor(own_real, pmean),
            "mask has no say": mask_ignored,
            "Padding is no example": with_divisor(len, pmean),
            "There are NaN": weighted_means,
            "as many times too large": lambda *a: jax.tree.map(
                lambda x: x * DEVICES, with_divisor(all_real)(*a)
            ),
            "is varying": divided_after,
        },
        context={"prove": lesson()["prove_2"]},
        secret=("psum((total", "/ count"),
    )


def of_examples(key, shape, axis_name="data", rate=0.9):
    keys = example_keys(key, shape[0], axis_name)
    return jax.vmap(lambda key: jax.random.bernoulli(key, rate, shape[1:]))(keys)


def of_device(key, shape):
    return jax.random.bernoulli(jax.random.fold_in(key, jax.lax.axis_index("data")), 0.9, shape)


def pixel_answers() -> Answers:
    return Answers(
        right=of_examples,
        wrong={
            "All devices still lose": lambda key, shape: jax.random.bernoulli(key, 0.9, shape),
            "depends on how many": of_device,
            "begins to count anew": lambda key, shape: of_examples(key, shape, None),
            "where 90 % should": lambda key, shape: of_examples(key, shape, rate=0.5),
            "in the shape that it is given": lambda key, shape: of_examples(key, shape)[:, :7],
            "stay together": lambda key, shape: jnp.broadcast_to(
                of_examples(key, shape)[:, :1], shape
            ),
            "returns nothing": lambda key, shape: None,
        },
        context={"prove": lesson()["prove_3"], "mesh": lesson()["mesh"]},
        secret=('"data")', "jax.vmap("),
    )


def loaded(seed, part, size=None):
    """A loader: its seed of (epoch, process), and which part of the batch it takes."""

    def rows(epoch, number, process, count):
        names = lesson()
        order = np.random.default_rng(seed(epoch, process)).permutation(len(names["train_labels"]))
        batch = order[number * names["config"].BATCH_SIZE :][: size or names["whole"]]
        return part(batch, process, count)

    return rows


def own_part(batch, process, count):
    return batch.reshape(count, -1)[process]


def own_share(epoch, number, process, count):
    share = np.arange(len(lesson()["train_labels"]))[process::count]
    size = lesson()["whole"] // count
    return np.random.default_rng(epoch).permutation(share)[number * size :][:size]


def row_answers() -> Answers:
    def by_epoch(epoch, process):
        return epoch

    return Answers(
        right=loaded(by_epoch, own_part),
        wrong={
            "don't shuffle alike": loaded(lambda e, p: e + 1000 * p, own_part),
            "All processes load the same": loaded(by_epoch, lambda b, p, c: own_part(b, 0, c)),
            "Each loads its part": loaded(by_epoch, lambda b, p, c: b),
            "depends on how many there are": own_share,
            "Two epochs have": loaded(lambda e, p: 0, own_part),
            "but not with the script": loaded(lambda e, p: e + 7, own_part),
            "returns nothing": loaded(by_epoch, lambda b, p, c: None),
        },
        context={"prove": lesson()["prove_4"], "count": DEVICES, "batches": 16},
        secret=("default_rng(epoch).permutation", ".reshape(count"),
    )


def rate_answers() -> Answers:
    tuned, warmup = lesson()["TUNED_RATE"], lesson()["config"].WARMUP

    def ramp(count):
        return jnp.minimum(1, count / warmup)

    return Answers(
        right=lambda count, scale: tuned * (1 + (scale - 1) * ramp(count)),
        wrong={
            "square of `scale`": lambda c, s: tuned * s * (1 + (s - 1) * ramp(c)),
            "never grows": lambda c, s: tuned,
            "no warm-up": lambda c, s: tuned * s,
            "root of `scale`": lambda c, s: tuned * (1 + (s**0.5 - 1) * ramp(c)),
            "starts with 0": lambda c, s: tuned * s * ramp(c),
            "doesn't rise by equal steps": lambda c, s: tuned * (1 + (s - 1) * ramp(c) ** 2),
            "returns nothing": lambda c, s: None,
        },
        context={"prove": lesson()["prove_5"], "tuned": tuned, "warmup": warmup},
        secret=("TUNED_RATE", "tuned *"),
    )


def answers() -> dict[str, Answers]:
    return {
        "11.1": spread_answers(),
        "11.2": summed_answers(),
        "11.3": mean_answers(),
        "11.4": pixel_answers(),
        "11.5": row_answers(),
        "11.6": rate_answers(),
    }
