"""What the tests of the lessons look for is found where it is: faults that are planted in a notebook."""

import nbformat
import pytest
from lab_page import Window

PLANTED = [
    '<p style="background:white;color:#777777">too pale</p>',
    '<p style="background:white;color:#767676">just dark enough</p>',
    '<div style="background:white"><p style="background:rgba(0,0,0,0.5);color:white">veil</p></div>',
    '<p aria-hidden="true" style="background:white;color:white">drawn with characters</p>',
    '<table style="width:3000px"><tr><th>wide</th></tr><tr><td>table</td></tr></table>',
    '<div style="overflow:auto;width:100px"><div style="width:200px">hidden</div></div>',
]
TALL = 'HTML("<p>line</p>" * 100)'
IMAGES = """
import matplotlib.pyplot as plt
for color in ("none", "white"):
    plt.figure(figsize=(3, 2), facecolor=color)
    plt.plot([1, 2])
    plt.show()
"""


@pytest.fixture(scope="module")
def planted(browser, server):
    html = [f"from IPython.display import HTML\nHTML({source!r})" for source in PLANTED]
    cells = [
        nbformat.v4.new_code_cell(source) for source in [*html, TALL, IMAGES, "1 / 0", "never run"]
    ]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=python)
    nbformat.write(notebook, server.root / "planted.ipynb")
    with Window(browser, server) as window:
        lesson = window.open("planted.ipynb")
        lesson.run_all()
        yield lesson


def test_contrast_is_that_of_wcag_also_where_colours_are_translucent(planted):
    ratios = {t["where"].split(": ")[1]: t["ratio"] for t in planted.ask("contrasts")}
    assert ratios["too pale"] == pytest.approx(4.48, abs=0.01)
    assert ratios["just dark enough"] == pytest.approx(4.54, abs=0.01)
    assert ratios["veil"] == pytest.approx(3.98, abs=0.05)  # white on #808080, or #7f7f7f
    assert "drawn with characters" not in ratios


def test_what_is_too_wide_or_has_to_be_scrolled_is_named_with_its_cell(planted):
    found = planted.ask("tooWide")
    assert {line.split(":")[0] for line in found} == {"cell 4", "cell 5"}, found
    assert any("TABLE" in line for line in found)


def test_what_is_too_tall_is_seen(planted):
    assert [i for i, height in enumerate(planted.ask("heights")) if height > 1500] == [6]


def test_a_transparent_plot_is_told_from_an_opaque_one(planted):
    assert [image["opaque"] for image in planted.ask("images")] == [False, True]


def test_an_error_ends_the_run_and_is_reported_with_the_cells_that_never_ran(planted):
    (error,) = planted.ask("errors")
    assert error["ename"] == "ZeroDivisionError"
    assert [cell["count"] for cell in planted.ask("cells")][-2:] == [9, None]
