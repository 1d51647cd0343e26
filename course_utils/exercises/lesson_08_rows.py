"""Exercise 08.2: another placement of the model, proved equal to one device."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import assert_equal_to_one_device
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function
from course_utils.models.mlp import make_train_step


@defined(
    "08.2",
    "Split the rows over the model axis",
    kind="fill the gap",
    trains=("train a model whose weights are divided",),
    form=function("x", "mesh"),
    hints=(
        "`over_model` above does it for columns. Which entry of a spec is about rows, and which length "
        "has to divide?",
        "The optimizer's state goes through this function, too: it holds a count without any axis. And "
        "a bias has one axis, which isn't one of rows.",
    ),
    right="Another function of three lines, another placement, the same training. What it costs, the "
    "tables of this section tell: hand it to `placed_state` and `collectives`.",
)
def over_rows(
    spec_of: Callable, mesh: Mesh, loss_fn: Callable, params: Any, batch: Any
) -> Iterator[tuple[Any, str]]:
    """Ask for the specs of all kinds of leaves, on several meshes; train one step with them."""
    yield from _specs(spec_of, mesh)
    optimizer = optax.sgd(0.1, momentum=0.9)
    state = (params, optimizer.init(params))
    places = jax.tree.map(lambda x: NamedSharding(mesh, spec_of(x, mesh)), state)
    step = make_train_step(loss_fn, optimizer)
    pinned = jax.jit(step, out_shardings=(places, None))
    placed, split = jax.device_put(state, places), NamedSharding(mesh, P("data"))
    try:
        assert_equal_to_one_device(pinned, placed, jax.device_put(batch, split), reference=step)
    except AssertionError as error:
        yield True, f"Trained with this placement, one device differs. {error}"


def _specs(spec_of: Callable, mesh: Mesh) -> Iterator[tuple[Any, str]]:
    """Compare the specs for leaves of the state, on this mesh and on larger ones."""
    wide = SimpleNamespace(shape={"data": 2, "model": 4})  # all that a spec depends on
    for place in (wide, mesh):
        m = place.shape["model"]
        found = spec_of(_leaf(8 * m, 6 * m), place)
        yield found is None, "Your function returns nothing: return a `P(...)`."
        yield (
            not isinstance(found, P),
            "Return a spec, `P(...)`; `placed_state` makes the rest of it.",
        )
        yield (
            "data" in str(found),
            "Over `model`, not over `data`: that is where the batch is split.",
        )
        entries = _entries(found)
        yield not entries, "A matrix whose rows divide should be split."
        yield (
            entries == (None, "model"),
            "Those are the columns. The first entry is about the rows.",
        )
        yield entries != ("model",), "Rows over `model`, and nothing else: what is that spec?"
    m = wide.shape["model"]
    for shape, message in (
        (
            (8 * m + 1, 6 * m),
            "A matrix whose rows don't divide has to stay whole: ask for the length.",
        ),
        ((8 * m, 6 * m + 1), ""),
        ((8 * m,), "A bias has no rows, and goes to every row: let it stay whole."),
        ((), "A count without axes can't be split."),
    ):
        wanted = () if message else ("model",)
        yield (
            _entries(spec_of(_leaf(*shape), wide)) != wanted,
            message or "Whether rows can be split doesn't depend on the number of columns.",
        )


def _leaf(*shape: int) -> jax.ShapeDtypeStruct:
    # As with arrays, shape, ndim and dtype are what a placement may ask for.
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _entries(spec: P) -> tuple[Any, ...]:
    """The entries of a spec without the `None`s at its end, which mean nothing."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)
