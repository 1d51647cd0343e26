"""The picture of a placement shows every piece where it is, and who holds it."""

import base64

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest
from display_capture import shown
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon
from processes import run_python

from course_utils import paper
from course_utils.placement import _show, pieces, show_placement
from course_utils.placement._blocks import layout, numbers
from course_utils.placement._holding import holding

mpl.use("agg")


def make_mesh(shape=(4, 2), names=("data", "model")):
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


def placed(shape, spec, mesh=None):
    return jax.device_put(jnp.zeros(shape), NamedSharding(mesh or make_mesh(), spec))


def planned(shape, spec, mesh=None):
    sharding = NamedSharding(mesh or make_mesh(), spec)
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


@pytest.fixture
def drawn(monkeypatch):
    """Draw arrays; returns the figure and its alternative text."""

    def draw(**arrays):
        found = []
        monkeypatch.setattr(_show, "show_figure", lambda figure, alt: found.append((figure, alt)))
        show_placement(arrays)
        return found[0]

    yield draw
    plt.close("all")


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_split_rows_are_one_piece_per_device_group():
    found = pieces(placed((8, 6), P("data", None)))
    assert sorted(found) == [((2 * i, 2 * i + 2), (0, 6)) for i in range(4)]
    assert found[(0, 2), (0, 6)] == [0, 1]


def test_a_replicated_array_is_one_piece_that_all_hold():
    assert pieces(placed((8, 6), P())) == {((0, 8), (0, 6)): list(range(8))}


def test_two_axes_make_one_piece_for_each_device():
    found = pieces(placed((8, 6), P("data", "model"))).values()
    assert sorted(ids for (ids,) in found) == list(range(8))


@pytest.mark.parametrize(
    ("shape", "spec"),
    [((8,), P("data")), ((8, 6), P("model", None)), ((4, 8, 6), P("data", "model", None))],
)
def test_the_pieces_are_those_that_the_devices_really_hold(shape, spec):
    array = placed(shape, spec)
    found = pieces(array)
    for shard in array.addressable_shards:
        parts = zip(shard.index, shape, strict=True)
        assert shard.device.id in found[tuple(part.indices(size)[:2] for part, size in parts)]


@pytest.mark.parametrize(
    ("ids", "text"), [([0], "0"), ([0, 1], "0, 1"), ([2, 3, 4, 5], "2-5"), ([0, 2, 4], "0, 2, 4")]
)
def test_many_devices_are_named_as_a_range(ids, text):
    assert numbers(ids) == text


def test_the_axes_say_what_splits_them_and_the_caption_says_what_is_copied():
    held = holding("x", placed((3, 8, 6), P(None, "data")))
    assert held.axes == ("whole", "split by data", "whole")
    assert held.caption == "on each device: (3, 2, 6)\n2 copies of each piece (over model)"
    assert holding("x", placed((8, 8), P(("data", "model")))).axes[0] == "split by data, model"
    assert holding("x", placed((8, 8), P())).caption == "whole on each of 8 devices"
    assert holding("x", jnp.zeros(3)).caption == "whole on the one device"


def test_a_mesh_axis_of_one_splits_nothing_and_copies_nothing():
    held = holding("x", placed((8, 6), P("data", "model"), make_mesh((8, 1))))
    assert held.axes == ("split by data", "whole")
    assert held.copied_over == ()


def test_the_mesh_is_drawn_as_it_is_arranged_with_both_axes_named():
    mesh = Mesh(
        np.array(jax.devices())[[3, 1, 0, 2, 7, 6, 5, 4]].reshape(2, 4), ("rows", "columns")
    )
    grid = holding("x", placed((8, 8), P("rows"), mesh)).grid
    assert grid.ids == ((3, 1, 0, 2), (7, 6, 5, 4))
    assert (grid.down, grid.across) == ("rows", "columns")


def test_a_mesh_of_three_axes_has_its_first_two_downwards():
    grid = holding("x", placed((8,), P("a"), make_mesh((2, 2, 2), ("a", "b", "c")))).grid
    assert grid.ids == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert (grid.down, grid.across) == ("a, b", "c")


@pytest.mark.parametrize("shape", [(), (8,), (8, 6), (8, 8, 6), (2, 3, 8, 6)])
def test_arrays_of_any_rank_are_drawn_with_a_text_alternative(shape, shell):
    spec = P(*[None] * (len(shape) - 2), "data") if len(shape) > 1 else P("data")
    data, metadata = shown(show_placement, {"an array": placed(shape, spec if shape else P())})
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    alt = metadata["image/png"]["alt"]
    assert f"an array, shape {shape}: " in alt
    assert ("4 pieces" in alt) == (len(shape) > 0)


def test_the_text_alternative_says_who_holds_which_piece(drawn):
    _, alt = drawn(weights=placed((8, 6), P("model", None)))
    assert "axis 0 split by model, axis 1 whole" in alt
    assert "[0:4, 0:6] on 0, 2, 4, 6" in alt
    assert "[4:8, 0:6] on 1, 3, 5, 7" in alt


def test_every_device_stands_in_a_piece_and_in_the_mesh_in_the_same_colour(drawn):
    figure, _ = drawn(x=placed((8, 6), P("data", "model")))
    patches = [p for p in figure.axes[0].patches if isinstance(p, Polygon)]
    assert len(patches) == 8 + 8
    colors = [patch.get_facecolor() for patch in patches]
    assert len(set(colors[:8])) == 8
    assert colors[:8] == colors[8:]
    assert all(texts(figure).count(str(device)) == 2 for device in range(8))


def test_copies_have_one_colour_in_the_mesh(drawn):
    figure, _ = drawn(x=placed((8, 6), P("data", None)))
    mesh = [patch.get_facecolor() for patch in figure.axes[0].patches[-8:]]
    assert mesh[0::2] == mesh[1::2]
    assert len(set(mesh)) == 4


def test_sixteen_pieces_differ_in_colour_or_hatching(drawn, monkeypatch):
    ids = {((i, i + 1),): [i] for i in range(16)}
    held = holding("x", placed((8,), P("data")))
    object.__setattr__(held, "pieces", ids)
    styles = _show.style_of(held)
    assert len(set(styles.values())) == 16


def test_a_split_first_axis_of_three_becomes_blocks_side_by_side(drawn):
    figure, _ = drawn(x=placed((8, 8, 6), P("data", "model")))
    assert [text for text in texts(figure) if text.startswith("[")] == [
        "[0:2]",
        "[2:4]",
        "[4:6]",
        "[6:8]",
    ]
    assert layout(holding("x", placed((8, 8, 6), P(None, "data")))).fronts == (((0, 8),),)


def test_no_text_is_smaller_than_nine_points_or_outside_the_figure(drawn):
    many = {f"array {i}": placed((16, 8, 8), P("data", "model")) for i in range(2)}
    figure, _ = drawn(**many, flat=placed((16,), P(("data", "model"))), whole=placed((4, 4), P()))
    figure.canvas.draw()
    box = figure.bbox
    for text in figure.axes[0].texts:
        assert text.get_fontsize() >= 9
        extent = text.get_window_extent()
        assert box.x0 - 1 <= extent.x0 <= extent.x1 <= box.x1 + 1, text.get_text()
        assert box.y0 - 1 <= extent.y0 <= extent.y1 <= box.y1 + 1, text.get_text()


def test_a_placement_can_be_drawn_before_the_array_exists(drawn):
    shape, spec = (8, 6), P("data", "model")
    assert drawn(x=planned(shape, spec))[1] == drawn(x=placed(shape, spec))[1]


def test_pieces_of_other_processes_are_drawn_too(drawn, monkeypatch):
    array = placed((8, 6), P("data", None))
    whole = drawn(x=array)[1]
    # As on two hosts: only the first half of the shards is here. None is asked for.
    monkeypatch.setattr(type(array), "addressable_shards", property(lambda self: 1 / 0))
    assert drawn(x=array)[1] == whole


def test_an_axis_that_does_not_divide_is_named_with_what_would():
    with pytest.raises(
        ValueError, match=r"'x' can't be drawn: axis 1 has 7 entries.* multiple of 4"
    ):
        show_placement({"x": planned((8, 7), P(None, "data"))})


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.zeros(3), TypeError, "'x': a ndarray has no placement; jax.device_put"),
        (3.0, TypeError, "'x': expected a jax.Array, got float"),
        (jax.ShapeDtypeStruct((3,), jnp.float32), TypeError, "'x': a ShapeDtypeStruct has no"),
    ],
)
def test_what_has_no_placement_is_named(array, error, message):
    with pytest.raises(error, match=message):
        show_placement({"x": array})


def test_an_abstract_mesh_holds_nothing():
    array = planned((8,), P("data"), AbstractMesh((4,), ("data",)))
    with pytest.raises(ValueError, match="'x' can't be drawn"):
        show_placement({"x": array})


def test_inside_a_jitted_function_there_is_nothing_to_draw():
    with pytest.raises(TypeError, match=r"'x': expected a jax\.Array"):
        jax.jit(lambda x: show_placement({"x": x}))(jnp.zeros(3))


def test_nothing_to_draw_is_said():
    with pytest.raises(ValueError, match="nothing to draw"):
        show_placement({})


# How linear RGB looks to a person who lacks one kind of cone (Machado and others, 2009).
SEEN = {
    "all cones": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(name):
    rgb = np.array(to_rgb(name))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB: a distance of about 2 can just be seen."""
    x, y, z = np.cbrt(TO_XYZ @ np.clip(rgb, 0, 1) / TO_XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", SEEN)
def test_neighbouring_pieces_look_different_to_everybody(eyes):
    seen = [lab(np.array(SEEN[eyes]) @ linear(color)) for color in paper.COLORS]
    apart = [np.linalg.norm(a - b) for a, b in zip(seen, [*seen[1:], seen[0]], strict=True)]
    assert min(apart) > 30, apart


@pytest.mark.parametrize("color", [*paper.COLORS, paper.WHOLE])
def test_the_text_on_every_colour_has_a_contrast_of_four_and_a_half(color):
    def luminance(name):
        return linear(name) @ TO_XYZ[1]

    ink = luminance("white" if color == paper.WHITE_ON else "black")
    light, dark = sorted([luminance(color), ink], reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_sixteen_devices_are_drawn():
    result = run_python(
        """
        import jax
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        from course_utils.placement import show_placement

        mesh = jax.make_mesh((16,), ("data",), axis_types=(AxisType.Auto,))
        show_placement({"x": jax.device_put(jax.numpy.zeros(32), NamedSharding(mesh, P("data")))})
        """,
        JAX_NUM_CPU_DEVICES="16",
        MPLBACKEND="agg",
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "16 pieces" in result.stdout
    assert "[30:32] on 15" in result.stdout
