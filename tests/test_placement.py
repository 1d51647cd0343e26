"""The picture of a placement shows every piece where it is, and who holds it."""

import base64

import jax
import jax.numpy as jnp
import matplotlib as mpl
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.placement import _numbers, _onto, pieces, show_placement

mpl.use("agg")


def placed(shape, spec, mesh_shape=(4, 2)):
    mesh = jax.make_mesh(mesh_shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    return jax.device_put(jnp.zeros(shape), NamedSharding(mesh, spec))


def test_split_rows_are_one_piece_per_device_group():
    found = pieces(placed((8, 6), P("data", None)))
    assert sorted(found) == [((2 * i, 2 * i + 2), (0, 6)) for i in range(4)]
    assert found[(0, 2), (0, 6)] == [0, 1]


def test_a_replicated_array_is_one_piece_that_all_hold():
    assert pieces(placed((8, 6), P())) == {((0, 8), (0, 6)): list(range(8))}


def test_two_axes_make_one_piece_for_each_device():
    assert sorted(ids for (ids,) in pieces(placed((8, 6), P("data", "model"))).values()) == list(
        range(8)
    )


def test_the_third_axis_is_projected_onto_the_two_that_are_drawn():
    found = _onto(pieces(placed((3, 8, 6), P(None, "data", "model"))), (0, 1))
    assert found[(0, 3), (0, 2)] == [0, 1]
    assert len(found) == 4


@pytest.mark.parametrize(
    ("ids", "text"), [([0], "0"), ([0, 1], "0,1"), ([2, 3, 4, 5], "2-5"), ([0, 2, 4], "0,2,4")]
)
def test_many_devices_are_named_as_a_range(ids, text):
    assert _numbers(ids) == text


@pytest.mark.parametrize("shape", [(8,), (8, 6), (3, 8, 6), (2, 3, 8, 6)])
def test_arrays_of_any_rank_are_drawn_with_a_text_alternative(shape):
    InteractiveShell.instance()
    spec = P(*[None] * (len(shape) - 2), "data") if len(shape) > 1 else P("data")
    with capture_output() as shown:
        show_placement({"an array": placed(shape, spec)})
    (output,) = shown.outputs
    assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")
    assert "an array" in output.data["text/plain"]
    assert "4 pieces on 8 devices" in output.data["text/plain"]
