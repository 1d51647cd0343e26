"""Answers to the exercises of lesson 08, on eight simulated devices."""

import jax
import numpy as np
from exercise_answers import Answers
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.models.shared_block import init_params, make_loss

AXES = ("data", "model")
MESH = jax.make_mesh((4, 2), AXES, axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:8])
MODELS = {
    "small": {"layers": 24, "width": 4096, "link GB/s": 200},
    "deep": {"layers": 96, "width": 8192, "link GB/s": 200},
    "wide": {"layers": 2, "width": 65_536, "link GB/s": 200},
    "far apart": {"layers": 96, "width": 8192, "link GB/s": 1},
}


def over_rows(x, mesh):
    if x.ndim == 2 and x.shape[0] % mesh.shape["model"] == 0:
        return P("model")
    return P()


def written_out(x, mesh):
    return P("model", None) if len(over_rows(x, mesh)) else P()


def columns(x, mesh):
    if x.ndim and x.shape[-1] % mesh.shape["model"] == 0:
        return P(*[None] * (x.ndim - 1), "model")
    return P()


def over_data(x, mesh):
    return P("data") if len(over_rows(x, mesh)) else P()


def both(x, mesh):
    return P("model", "data") if len(over_rows(x, mesh)) else P()


def shardings(x, mesh):
    return NamedSharding(MESH, over_rows(x, mesh))


def never(x, mesh):
    return P()


def undivided(x, mesh):
    return P("model") if x.ndim == 2 else P()


def asks_for_both(x, mesh):
    return over_rows(x, mesh) if all(s % mesh.shape["model"] == 0 for s in x.shape) else P()


def biases_too(x, mesh):
    return P("model") if x.ndim and x.shape[0] % mesh.shape["model"] == 0 else P()


def counts_too(x, mesh):
    return over_rows(x, mesh) if x.ndim else P("model")


def returns_nothing(x, mesh):
    over_rows(x, mesh)


def first_length(x, mesh):
    return P("model") if x.shape[0] % mesh.shape["modle"] == 0 else P()


def placed_answers() -> Answers:
    right = {"piece": (4, 8), "copies": 2, "row sums": "nothing", "column sums": "sends"}
    right |= {"columns, then rows": "sends", "columns, then columns": "sends"}
    return Answers(
        right=right,
        wrong={
            "is the whole": right | {"piece": (16, 16)},
            "still whole": right | {"piece": (4, 16)},
            "first entry is about the rows": right | {"piece": (8, 4)},
            "is each axis of that piece": right | {"piece": (2, 2)},
            "Not all devices": right | {"copies": 8},
            "number of different pieces": right | {"copies": 4},
            "says nothing of `model`": right | {"copies": 1},
            "Who holds it": right | {"row sums": "sends"},
            "rows are divided": right | {"column sums": "nothing"},
            "gives complete": right | {"columns, then rows": "nothing"},
            "all of the first product": right | {"columns, then columns": "nothing"},
        },
        context={"mesh": MESH, "size": 16},
        secret=("(4, 8)",),
    )


def row_answers() -> Answers:
    random = np.random.default_rng(0)
    return Answers(
        right=written_out,
        wrong={
            "Those are the columns": columns,
            "not over `data`": over_data,
            "`placed_state` makes the rest": shardings,
            "should be split": never,
            "rows don't divide": undivided,
            "the number of columns": asks_for_both,
            "A bias has no rows": biases_too,
            "A count without axes": counts_too,
            "returns nothing": returns_nothing,
        },
        context={
            "mesh": MESH,
            "loss_fn": make_loss(2, 0.1),
            "params": init_params(jax.random.key(1), 8),
            "batch": (random.random((8, 784), np.float32), random.integers(0, 10, 8, np.int32)),
        },
        secret=('P("model")', "P('model')", 'P("model", None)', "x.shape[0]"),
        raises={'mesh.shape["modle"]': first_length},
    )


def choice_answers() -> Answers:
    state = 96 * 8192**2 * 12 / 1e9
    right = {"GB, replicated": state, "GB, fully sharded": state / 8}
    right |= {"small": "data", "deep": "FSDP", "wide": "tensor", "far apart": "pipeline"}
    return Answers(
        right=right,
        wrong={
            "kept from step to step": right | {"GB, replicated": state / 3},
            "more than one number": right | {"GB, replicated": state * 2 / 3},
            "number of parameters": right | {"GB, replicated": state / 12},
            "the count of numbers": right | {"GB, replicated": state / 4},
            "whole on each device": right | {"GB, replicated": state / 8},
            "hold together": right | {"GB, replicated": state * 8},
            "one of the layers": right | {"GB, replicated": state / 96},
            "not bytes": right | {"GB, replicated": state * 1e9},
            "how many bytes": right | {"GB, replicated": 50},
            "only its part": right | {"GB, fully sharded": state},
            "evenly": right | {"GB, fully sharded": 5},
            "'small': its whole state": right | {"small": "FSDP"},
            "'deep': every device": right | {"deep": "data"},
            "'deep': a layer fits": right | {"deep": "tensor"},
            "'wide': not even": right | {"wide": "FSDP"},
            "'far apart': over that link": right | {"far apart": "FSDP"},
        },
        context={"models": MODELS, "devices": 8, "memory": 24},
        secret=(f"{state:.1f}", f"{state:.0f}"),
    )


def answers() -> dict[str, Answers]:
    return {"08.1": placed_answers(), "08.2": row_answers(), "08.3": choice_answers()}
