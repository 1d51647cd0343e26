"""Answers to the exercises of lesson 04, on four simulated devices."""

import jax
import jax.numpy as jnp
import numpy as np
from exercise_answers import Answers
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.hlo import Totals
from course_utils.models.shared_block import init_params, make_loss

N, BATCHES = 4, 3
MESH = jax.make_mesh((N,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:N])
LOSS = make_loss(2, 0.1)


def placed(*spec):
    return NamedSharding(MESH, P(*spec))


def gradients(params, batch):
    return jax.grad(LOSS, has_aux=True)(params, batch)[0]


def accumulate(params, stack):
    def add(total, batch):
        return jax.tree.map(jnp.add, total, gradients(params, batch)), None

    total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), stack)
    return jax.tree.map(lambda g: g / len(stack[0]), total)


def apart(params, stack):
    """Sums of gradients, one for each device."""

    def view(x):
        rows = x.reshape(len(x), N, -1, *x.shape[2:])
        return jax.lax.with_sharding_constraint(rows, placed(None, "data"))

    def add(sums, batch):
        each = jax.vmap(gradients, in_axes=(None, 0))(params, batch)
        return jax.tree.map(jnp.add, sums, each), None

    def nothing(p):
        return jax.lax.with_sharding_constraint(jnp.zeros((N, *p.shape)), placed("data"))

    sums, _ = jax.lax.scan(add, jax.tree.map(nothing, params), jax.tree.map(view, stack))
    return sums


def frugal(params, stack):
    return jax.tree.map(lambda g: g.mean(axis=0) / BATCHES, apart(params, stack))


def sum_over_batches(params, stack):
    return jax.tree.map(lambda g: g.mean(axis=0), apart(params, stack))


def sum_over_devices(params, stack):
    return jax.tree.map(lambda g: g.sum(axis=0) / BATCHES, apart(params, stack))


def divided_twice(params, stack):
    return jax.tree.map(lambda g: g.mean(axis=0) / BATCHES / N, apart(params, stack))


def first_batch_only(params, stack):
    return frugal(params, jax.tree.map(lambda x: jnp.stack([x[0]] * BATCHES), stack))


def devices_left(params, stack):
    return jax.tree.map(lambda g: g / BATCHES, apart(params, stack))


def returns_nothing(params, stack):
    frugal(params, stack)


def misspelt(params, stack):
    return jax.tree.map(lambda g: g.maen(axis=0), apart(params, stack))


def pay_answers() -> Answers:
    right = {
        "twice the repetitions": "more",
        "twice the images per device": "more",
        "twice the devices, each with as many images": "same",
        "twice the devices, the same global batch": "less",
        "parameters on each device": "same",
    }
    return Answers(
        right=right,
        wrong={
            "it is one block": right | {"twice the repetitions": "same"},
            "Each image is work": right | {"twice the images per device": "same"},
            "has it more images": right | {"twice the devices, each with as many images": "more"},
            "is left for one of them": right | {"twice the devices, the same global batch": "same"},
            "first of the five steps": right | {"parameters on each device": "less"},
        },
        context={"width": 8, "repeats": 3, "rows": 4},
    )


def piece_answers() -> Answers:
    right = {"stack": (5, 6, 3), "labels": (6,), "weights": (3, 24)}
    right |= {"first row of the last": 18, "one row more": "refused"}
    return Answers(
        right=right,
        wrong={
            "Under 'stack' stands the global": right | {"stack": (5, 24, 3)},
            "Under 'stack' the number of axes": right | {"stack": (6, 3)},
            "the first axis is cut": right | {"stack": (2, 24, 3)},
            "Under 'stack': which axis": right | {"stack": (5, 4, 3)},
            "Under 'labels' stands the global": right | {"labels": (24,)},
            "Under 'labels': which axis": right | {"labels": (4,)},
            "names no axis": right | {"weights": (3, 6)},
            "is its last row": right | {"first row of the last": 23},
            "counted from 0, as indices": right | {"first row of the last": 19},
            "no such row": right | {"first row of the last": 24},
            "come before the last": right | {"first row of the last": 4},
            "all pieces alike": right | {"one row more": "accepted"},
        },
        context={"mesh": MESH, "rows": 24},
        secret=("(5, 6, 3)", "(3, 24)", "18"),
    )


def thrice_answers() -> Answers:
    # Five outside a loop with two in each repetition, and sizes that nobody mistakes.
    counts = {r: Totals(5 + 2 * r, 1000 + 70 * r) for r in (4, 8, 12)}
    right = {"for each repetition": 2, "executed": 29, "bytes": 1840}
    return Answers(
        right=right,
        wrong={
            "with one of them": right | {"for each repetition": 8},
            "is sent in the loop": right | {"for each repetition": 0},
            "Divide what was added": right | {"for each repetition": 3},
            "Under 'executed' all is multiplied": right | {"executed": 39},
            "Under 'executed': that is the number": right | {"executed": 21},
            "Under 'bytes' all is multiplied": right | {"bytes": 3840},
            "Under 'bytes': continue": right | {"bytes": 2000},
        },
        context={"repeats": 4, "count": counts.__getitem__},
        secret=("29", "1840"),
    )


def frugal_answers() -> Answers:
    random = np.random.default_rng(0)
    stack = (
        random.random((BATCHES, 4 * N, 784), np.float32),
        random.integers(0, 10, (BATCHES, 4 * N), np.int32),
    )
    return Answers(
        right=frugal,
        wrong={
            "times its bytes": accumulate,
            "that is their sum": sum_over_batches,
            "as there are devices": sum_over_devices,
            "too often": divided_twice,
            "isn't the mean gradient": first_batch_only,
            "hasn't the tree": devices_left,
            "returns nothing": returns_nothing,
        },
        context={
            "mesh": MESH,
            "loss_fn": LOSS,
            "params": jax.device_put(init_params(jax.random.key(1), 8), placed()),
            "stack": jax.device_put(stack, placed(None, "data")),
        },
        secret=("jax.vmap(", "with_sharding_constraint("),
        raises={"g.maen(axis=0)": misspelt},
    )


def answers() -> dict[str, Answers]:
    return {
        "04.1": pay_answers(),
        "04.2": piece_answers(),
        "04.3": thrice_answers(),
        "04.4": frugal_answers(),
    }
