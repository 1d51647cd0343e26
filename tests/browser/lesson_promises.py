"""What each lesson promises in JupyterLab, in Chromium: it runs to its end, and can be read.

In the small `test` profile, with each solution in a cell of its own below its exercise. What a lesson
looks like is kept under runs/browser/, for eyes. Two test files take half of the lessons each, so
that two workers share them.
"""

import re

import pytest
from lesson_files import LESSONS
from solved_lessons import solutions_of

from course_utils.exercises.showing import EXERCISE
from course_utils.headless import navigation

WIDTHS = (1280, 1600)
TALLEST = 1500  # pixels below one cell, not counting plots: about two screens
MOST_LINES = 60  # of plain text below one cell


def test_run_all_reaches_the_last_cell_without_an_error(lesson):
    assert [error["evalue"] for error in lesson.ask("errors")] == []
    counts = [cell["count"] for cell in lesson.ask("cells")]
    assert counts == list(range(1, len(counts) + 1))


def test_every_table_and_every_plot_is_seen(lesson):
    bundles = [o.get("data", {}) for cell in lesson.ask("cells") for o in cell["outputs"]]
    pages = [text(data.get("text/html", "")) for data in bundles]
    tables, images = lesson.ask("tables"), lesson.ask("images")
    assert len(tables) == sum(page.count("<table") for page in pages) > 0
    assert all(t["rows"] > 1 and t["width"] > 80 and t["height"] > 30 for t in tables)
    assert len(images) == sum(page.count("<img") for page in pages)
    assert all(image["width"] > 200 and image["natural"] > 200 for image in images)


def test_a_plot_has_words_and_a_background_of_its_own(lesson):
    images = lesson.ask("images")
    assert [image for image in images if len(image["alt"]) < 20 or not image["opaque"]] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_has_to_be_scrolled_sideways(lesson, width):
    lesson.window.resize(width)
    assert lesson.ask("tooWide") == []


def test_no_cell_floods_the_page(lesson):
    assert [height for height in lesson.ask("heights") if height > TALLEST] == []
    lines = [text(o.get("text", "")).count("\n") for c in lesson.ask("cells") for o in c["outputs"]]
    assert max(lines, default=0) <= MOST_LINES


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_of_the_outputs_has_enough_contrast(lesson, theme):
    lesson.window.theme(theme)
    texts = lesson.ask("contrasts")
    lesson.take_picture(f"{lesson.path.split('/')[-1].removesuffix('.ipynb')}-{theme}")
    assert len(texts) > 20
    assert [f"{t['ratio']:.2f} {t['where']}" for t in texts if t["ratio"] < 4.5] == []


def test_the_page_asks_nobody_but_its_own_server(lesson):
    asked = lesson.window.asked
    own = (
        lesson.window.server.url,
        lesson.window.server.url.replace("http", "ws"),
        "data:",
        "blob:",
    )
    assert [address for address in asked if not address.startswith(own)] == []


def test_an_exercise_left_alone_stops_nothing_and_its_solution_passes_its_check(lesson):
    known = solutions_of(lesson.path)
    if not known:
        pytest.skip("this lesson has no exercises")
    bundles = (o.get("data", {}) for cell in lesson.ask("cells") for o in cell["outputs"])
    said = [data[EXERCISE] for data in bundles if EXERCISE in data]
    assert [(one["id"], one["status"]) for one in said] == [
        (id, status) for id in known for status in ("not attempted", "solved")
    ]


def test_the_links_lead_to_the_other_lessons(lesson):
    names = [path.stem for path in LESSONS]
    here = names.index(lesson.path.split("/")[-1].removesuffix(".ipynb"))
    hrefs = lesson.ask("links", navigation.MARK.strip("* :"))
    linked = [re.search(r"notebooks/(\w+)\.ipynb", href)[1] for href in hrefs]
    near = names[1:] if here == 0 else [names[here - 1], names[0], *names[here + 1 : here + 2]]
    assert set(linked) == set(near)
    # The next one, or the one before the last, is opened as a person does it.
    (target, *_) = names[here + 1 :] or names[here - 1 :]
    lesson.page.locator(f".jp-MarkdownOutput a[href*='{target}.ipynb']").first.click()
    neighbour = f"notebooks/{target}.ipynb"
    lesson.wait_until(f"jupyterapp.shell.currentWidget === course.panel('{neighbour}')")


def text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
