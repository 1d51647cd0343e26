"""Answers to the exercises of lesson 05, on four simulated devices."""

import jax
import numpy as np
from exercise_answers import Answers
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.models.shared_block import init_params, make_loss

N, RATE, REPEATS, MIX = 4, 0.1, 3, 0.1
MESH = jax.make_mesh((N,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:N])
LOSS = make_loss(REPEATS, MIX)


def given():
    random = np.random.default_rng(0)
    batch = (random.random((4 * N, 784), np.float32), random.integers(0, 10, 4 * N, np.int32))
    params = init_params(jax.random.key(1), 8)
    return {
        "mesh": MESH,
        "params": jax.device_put(params, NamedSharding(MESH, P())),
        "batch": jax.device_put(batch, NamedSharding(MESH, P("data"))),
    }


def down(params, grads, rate=RATE):
    return jax.tree.map(lambda p, g: p - rate * g, params, grads)


def own(params):
    return jax.lax.pcast(params, "data", to="varying")


def gradients(params, batch):
    (loss, _), grads = jax.value_and_grad(LOSS, has_aux=True)(params, batch)
    return loss, grads


def repaired(params, batch):
    loss, grads = jax.lax.pmean(gradients(own(params), batch), "data")
    return down(params, grads), loss


def published(params, batch):
    loss, grads = jax.lax.pmean(gradients(params, batch), "data")
    return down(params, grads), loss


def divided_twice(params, batch):
    loss, grads = jax.lax.pmean(gradients(own(params), batch), "data")
    return down(params, grads, RATE / N), loss


def update_of_the_copy(params, batch):
    params = own(params)
    loss, grads = jax.lax.pmean(gradients(params, batch), "data")
    return down(params, grads), loss


def divided_afterwards(params, batch):
    loss, grads = gradients(params, batch)
    return down(params, grads, RATE / N), jax.lax.pmean(loss, "data")


def sum_of_losses(params, batch):
    loss, grads = gradients(own(params), batch)
    loss, grads = jax.lax.psum((loss, grads), "data")
    return down(params, grads, RATE / N), loss


def uphill(params, batch):
    loss, grads = jax.lax.pmean(gradients(own(params), batch), "data")
    return down(params, grads, -RATE), loss


def stands_still(params, batch):
    return params, jax.lax.pmean(LOSS(params, batch)[0], "data")


def half_a_step(params, batch):
    loss, grads = jax.lax.pmean(gradients(own(params), batch), "data")
    return down(params, grads, RATE / 2), loss


def loss_with_its_extra(params, batch):
    loss, grads = jax.value_and_grad(LOSS, has_aux=True)(own(params), batch)
    loss, grads = jax.lax.pmean((loss, grads), "data")
    return down(params, grads), loss


def gradients_alone(params, batch):
    return jax.lax.pmean(gradients(own(params), batch)[1], "data")


def wrong_way_round(params, batch):
    return repaired(params, batch)[::-1]


def returns_nothing(params, batch):
    repaired(params, batch)


def misspelt(params, batch):
    loss, grads = jax.lax.pmaen(gradients(own(params), batch), "data")
    return down(params, grads), loss


def unknown_axis(params, batch):
    loss, grads = jax.lax.pmean(gradients(own(params), batch), "rows")
    return down(params, grads), loss


def shard_answers() -> Answers:
    right = {"rows": (4, 8), "columns": (16, 2), "whole": (16, 8), "psum": 6, "pmean": 1.5}
    return Answers(
        right=right,
        wrong={
            "Under 'rows' stands the whole array": right | {"rows": (16, 8)},
            "Under 'columns' stands the whole array": right | {"columns": (16, 8)},
            "Under 'rows', the wrong axis": right | {"rows": (16, 2)},
            "Under 'columns', the wrong axis": right | {"columns": (4, 8)},
            "Under 'rows' the number of axes": right | {"rows": (4,)},
            "Under 'rows': by how many": right | {"rows": (2, 8)},
            "names no axis": right | {"whole": (4, 8)},
            "wrong way round": right | {"psum": 1.5, "pmean": 6},
            "first position isn't 1": right | {"psum": 10, "pmean": 2.5},
            "as many ones": right | {"psum": 4, "pmean": 1},
            "adds up the positions": right | {"psum": 3},
            "divided by the number of devices": right | {"pmean": 6},
        },
        context={"mesh": MESH, "shape": (16, 8)},
        secret=("(4, 8)", "(16, 2)", "(16, 8)", "1.5"),
    )


def kind_answers() -> Answers:
    right = {
        "w * x": "varying",
        "psum": "invariant",
        "gradient": "invariant",
        "gradient of a copy": "varying",
        "added up by": "grad",
    }
    return Answers(
        right=right,
        wrong={
            "One factor": right | {"w * x": "invariant"},
            "different totals": right | {"psum": "varying"},
            "no factor would be left": right | {"gradient": "varying"},
            "a copy of its own": right | {"gradient of a copy": "invariant"},
            "divides by the number": right | {"added up by": "pmean"},
            "on the way forward": right | {"added up by": "loss"},
        },
        context={"mesh": MESH},
    )


def step_answers() -> Answers:
    return Answers(
        right=repaired,
        wrong={
            "never averaged": published,
            "once too often": divided_twice,
            "is varying": update_of_the_copy,
            "exchanges are executed": divided_afterwards,
            "isn't the mean over the whole batch": sum_of_losses,
            "up the gradient": uphill,
            "as they went in": stands_still,
            "where one device would": half_a_step,
            "isn't a single number": loss_with_its_extra,
            "Return two things": gradients_alone,
            "hasn't the tree": wrong_way_round,
            "returns nothing": returns_nothing,
        },
        context={**given(), "loss_fn": LOSS, "rate": RATE},
        secret=("pcast(", 'to="varying"'),
        raises={"jax.lax.pmaen(": misspelt, '"rows")': unknown_axis},
    )


def count_answers() -> Answers:
    # On CPU devices the block's exchange stays in the backward loop of these two.
    right = {"looks right": 2 * REPEATS + 5, "varying first": 1, "mean loss first": 2 * REPEATS + 1}
    return Answers(
        right=right,
        wrong={
            "through the whole backward pass": right | {"varying first": 2},
            "'looks right': nothing has changed": right | {"looks right": REPEATS + 5},
            "'looks right': you have doubled all": right | {"looks right": 2 * (REPEATS + 5)},
            "'mean loss first': you have doubled all": right
            | {"mean loss first": 2 * (REPEATS + 1)},
            "'mean loss first': count those": right | {"mean loss first": 1},
        },
        context={
            **given(),
            "repeats": REPEATS,
            "make_loss": lambda repeats: make_loss(repeats, MIX),
        },
        secret=("11", "7"),
    )


def answers() -> dict[str, Answers]:
    return {
        "05.1": shard_answers(),
        "05.2": kind_answers(),
        "05.3": step_answers(),
        "05.4": count_answers(),
    }
