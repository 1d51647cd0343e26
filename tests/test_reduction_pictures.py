"""The pictures of lesson 11: the order of a step, and who holds which rows of a padded batch."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from course_utils import reduction_order
from course_utils.reduction_order import show_reduction_order, show_rows

mpl.use("agg")


@pytest.fixture
def drawn(monkeypatch):
    """Call a picture; returns the figure and its alternative text."""

    def draw(function, *args, **kwargs):
        found = []
        monkeypatch.setattr(
            reduction_order, "show_figure", lambda *both, alt: found.append((*both, alt))
        )
        function(*args, **kwargs)
        return found[0]

    yield draw
    plt.close("all")


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
def test_the_order_has_its_four_steps_and_fits_its_figure(devices, drawn):
    figure, alt = drawn(show_reduction_order, devices)
    assert all(title in alt for title, _ in reduction_order.STEPS)
    assert f"device {devices - 1}" in texts(figure)
    figure.canvas.draw()
    whole = figure.bbox
    for text in (t for t in figure.findobj(mpl.text.Text) if t.get_text()):
        box = text.get_window_extent()
        assert whole.x0 <= box.x0, text.get_text()
        assert box.x1 <= whole.x1, text.get_text()


def test_of_many_devices_the_first_two_and_the_last_are_drawn(drawn):
    figure, _ = drawn(show_reduction_order, 8)
    names = [text for text in texts(figure) if text.startswith("device")]
    assert names == ["device 0", "device 1", "device 7"]


def test_each_device_is_drawn_with_the_real_rows_that_it_holds(drawn):
    mask = np.repeat([1.0, 0.0], [7, 5])
    figure, alt = drawn(show_rows, mask, 3, title="The last batch")
    words = [text for text in texts(figure) if "real" in text]
    assert words == ["4 real, 0 padding", "3 real, 1 padding", "0 real, 4 padding"]
    assert "device 2: 0 real, 4 padding" in alt
    strips = {round(patch.get_extents().width, 3) for patch in figure.axes[0].patches}
    assert len(strips) == 3  # whole, three quarters, one quarter


@pytest.mark.parametrize("devices", [0, 2])
def test_rows_that_do_not_divide_are_refused_by_name(devices):
    with pytest.raises(ValueError, match=rf"5 examples can't be split over {devices} devices"):
        show_rows(np.ones(5), devices, title="?")


def test_an_order_of_no_device_is_refused():
    with pytest.raises(ValueError, match="one device or more, not 0"):
        show_reduction_order(0)
