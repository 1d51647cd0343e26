"""Exercise 08.3: choose a parallelism for models of several sizes."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import choice, named, number

SLOW_S = 5.0  # gathering all parameters takes longer than most steps compute
_KINDS = choice("data", "FSDP", "tensor", "pipeline")


@defined(
    "08.3",
    "Choose a placement for a model too large for one device",
    kind="predict",
    trains=("divide parameters and optimizer state", "choose among data, tensor, pipeline"),
    form=named(
        {
            "GB, replicated": number("GB"),
            "GB, fully sharded": number("GB"),
            "small": _KINDS,
            "deep": _KINDS,
            "wide": _KINDS,
            "far apart": _KINDS,
        }
    ),
    hints=(
        "AdamW keeps two running averages for each parameter, and a float32 has 4 bytes. A layer has "
        "`width * width` parameters.",
        "Go down the table above for each model: does the whole state fit on one device? If not, does a "
        "layer of it? And how long would gathering all parameters take, over this link?",
    ),
    right="Three numbers decide: the state against the memory, a layer against the memory, and the "
    "bytes to gather against the link. Work them out before you rent anything.",
)
def chosen(
    answer: dict[str, Any], models: Mapping[str, Any], devices: int, memory: float
) -> Iterator[tuple[Any, str]]:
    """Work out each model's memory with AdamW's own state, and go down the lesson's table."""
    deep = models["deep"]
    state, size = (
        deep["layers"] * _state_gb(deep["width"]),
        deep["layers"] * _layer_gb(deep["width"]),
    )
    replicated, divided = answer["GB, replicated"], answer["GB, fully sharded"]
    right = _near(replicated, state)
    for mistaken, message in (
        (size, "Those are the parameters. What else is kept from step to step?"),
        (2 * size, "AdamW keeps more than one number beside each parameter."),
        (size / 4, "That is the number of parameters. Each of them takes several bytes."),
        (state / 4, "That is the count of numbers. Each of them takes several bytes."),
        (state / devices, "Replicated means whole on each device."),
        (state * devices, "That is what all devices hold together. And one?"),
        (state / deep["layers"], "That is one of the layers."),
        (1e9 * state, "Give GB, not bytes."),
    ):
        yield not right and _near(replicated, mistaken), message
    yield not right, "Parameters and AdamW's averages, float32, all layers: how many bytes is that?"
    yield (
        _near(divided, state) and devices > 1,
        "Fully sharded, a device keeps only its part of that between steps.",
    )
    yield not _near(divided, state / devices), "Divide the whole state evenly among the devices."
    for name, model in models.items():
        given, truth = answer[name], _choice(model, memory)
        yield given != truth, f"{name!r}: {_why(given, truth)}"


def _layer_gb(width: int) -> float:
    return 4 * width**2 / 1e9


def _state_gb(width: int) -> float:
    """GB of one layer's parameters and AdamW state, from the optimizer itself."""
    weights = jax.ShapeDtypeStruct((width, width), jnp.float32)
    state = weights, jax.eval_shape(optax.adamw(1e-3).init, weights)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state)) / 1e9


def _choice(model: Mapping[str, Any], memory: float) -> str:
    """What the lesson's table says: the simplest that fits and doesn't wait for its link."""
    layer = _state_gb(model["width"])
    if model["layers"] * layer < memory:
        return "data"
    if model["layers"] * _layer_gb(model["width"]) / model["link GB/s"] > SLOW_S:
        return "pipeline"
    return "FSDP" if layer < memory else "tensor"


def _why(given: str, truth: str) -> str:
    if given == "data":
        return "every device would hold the whole state, and it doesn't fit."
    return {
        "data": "its whole state fits on one device. Begin with what sends least and is simplest.",
        "FSDP": "a layer fits on a device, and the link is fast: so what need is there for more?",
        "tensor": "not even one layer's state fits on a device, so a layer has to be divided.",
        "pipeline": "over that link, how long does it take to gather what all layers hold, or to "
        "send activations in every layer?",
    }[truth]


def _near(a: float, b: float) -> bool:
    # Whoever counts in GiB is 7% off, and that is another unit; rounding is no mistake.
    return abs(a - b) <= 0.01 * abs(b)
