"""The pictures of a step: measured to scale, or an order that claims no times."""

import itertools

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from course_utils import five_steps, timeline
from course_utils.five_steps import show_five_steps
from course_utils.timeline import reading, show_order, show_timeline
from course_utils.timing import Timing

mpl.use("agg")


def timed(*samples, compiles=0):
    median = sorted(samples)[len(samples) // 2]
    spread = (max(samples) - min(samples)) / median
    return Timing(median, 1000 / median, spread, compiles, 0.0, samples, None, None)


PARTS = {
    "forward and backward": timed(5.0, 5.1, 5.2),
    "all-reduce": timed(0.8, 0.9, 1.0),
    "update": timed(0.1, 0.1, 0.1),
}


@pytest.fixture
def drawn(monkeypatch):
    """Call a picture; returns the figure, its alternative text and what the call returned."""

    def draw(function, *args, **kwargs):
        found = []
        for module in (five_steps, timeline):
            monkeypatch.setattr(module, "show_figure", lambda fig, alt: found.append((fig, alt)))
        result = function(*args, **kwargs)
        return *found[0], result

    yield draw
    plt.close("all")


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def bars(figure):
    """(left edge, length) of each bar."""
    return [(p.get_x(), p.get_width()) for p in figure.axes[0].patches]


def test_a_bar_is_as_long_as_its_median_and_begins_where_the_one_before_ends(drawn):
    figure, *_ = drawn(show_timeline, PARTS, timed(6.1), "two devices")
    *parts, whole = bars(figure)
    assert [width for _, width in parts] == pytest.approx([5.1, 0.9, 0.1])
    ends = itertools.accumulate(width for _, width in parts)
    assert [left for left, _ in parts] == pytest.approx([0, *list(ends)[:-1]])
    assert whole == (0, 6.1)


def test_every_time_stands_in_the_picture_with_fastest_and_slowest(drawn):
    figure, alt, _ = drawn(show_timeline, PARTS, timed(6.0, 6.1, 6.3), "two devices")
    for text in ("1  forward and backward: 5.1 ms (5 to 5.2)", "the whole step: 6.1 ms (6 to 6.3)"):
        assert text in texts(figure)
    assert "all-reduce 0.9 ms (0.8 to 1)" in alt
    assert "two devices" in alt


@pytest.mark.parametrize(
    ("whole", "says"),
    [
        (timed(6.0, 6.1, 6.2), "no difference beyond the spread"),
        (timed(4.0, 4.0, 4.0), "less. In one program parts overlap"),
        (timed(8.0, 8.0, 8.0), "1.9 ms are in none of them"),
    ],
)
def test_the_reading_calls_nothing_a_difference_that_the_spread_could_explain(whole, says, drawn):
    assert says in reading(PARTS, whole)
    assert drawn(show_timeline, PARTS, whole, "x")[2] == reading(PARTS, whole)


def test_a_time_in_which_something_was_compiled_is_refused_by_name():
    spoilt = {**PARTS, "update": timed(0.1, compiles=2)}
    with pytest.raises(ValueError, match="update: 2 programs were compiled"):
        show_timeline(spoilt, timed(6.1), "x")
    with pytest.raises(ValueError, match="the whole step: 1 programs"):
        show_timeline(PARTS, timed(6.1, compiles=1), "x")


def test_a_timeline_without_parts_is_refused():
    with pytest.raises(ValueError, match="needs the parts"):
        show_timeline({}, timed(6.1), "x")


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_the_order_shows_no_number_that_could_be_taken_for_a_time(devices, drawn):
    figure, alt, _ = drawn(show_order, devices, ["forward and backward"], "all-reduce", ["update"])
    found = texts(figure)
    assert "one training step: the order only; widths are no times" in found
    assert not any("ms" in text or "second" in text for text in found)
    assert found.count("all-reduce") == 1
    assert found.count("update") == min(devices, 3 if devices > 4 else 4)
    assert f"device {devices - 1}" in found
    assert alt.endswith("An order, no times.")


def test_a_part_has_one_colour_in_both_pictures(drawn):
    without = {name: PARTS[name] for name in ("forward and backward", "update")}
    figure, *_ = drawn(show_timeline, without, timed(6.1), "one device")
    measured = [patch.get_facecolor() for patch in figure.axes[0].patches[:2]]
    figure, *_ = drawn(show_order, 2, ["forward and backward"], "all-reduce", ["update"])
    assert measured == [patch.get_facecolor() for patch in figure.axes[0].patches[:2]]


def test_an_order_needs_somebody_to_wait_for():
    with pytest.raises(ValueError, match="two devices or more, not 1"):
        show_order(1, ["a"], "b", ["c"])


@pytest.mark.parametrize("devices", [1, 2, 3, 8, 16])
def test_the_five_steps_fit_their_figure_on_any_number_of_devices(devices, drawn):
    figure, alt, _ = drawn(show_five_steps, devices)
    figure.canvas.draw()
    assert f"device {devices - 1}" in texts(figure)
    assert f"on {devices} device(s)" in alt
    assert all(title in alt for title, _ in five_steps.STEPS)
    for text in figure.axes[0].texts:
        extent = text.get_window_extent()
        assert text.get_fontsize() >= 9
        assert 0 <= extent.x0 <= extent.x1 <= figure.bbox.x1, text.get_text()


def test_five_steps_on_no_device_are_refused():
    with pytest.raises(ValueError, match="one device or more, not 0"):
        show_five_steps(0)
