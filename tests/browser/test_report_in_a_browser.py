"""The report and the comparison as Chromium shows them: accessible, light and dark, on paper."""

import json
import subprocess

import pytest
from browsing import validator, violations

from course_utils.headless import compare, report
from course_utils.headless.repeats import merged, not_run

SCHEMES = ("light", "dark")
WIDTHS = {"wide": 1200, "narrow": 390}


def entry(name, status="passed", error=None, **figures):
    figures = {"jit throughput": 300_000.0, "eager throughput": 4_000.0, **figures}
    checks = [
        {"name": "The loss falls", "passed": True, "detail": ""},
        {"name": "Nothing compiles", "passed": status == "passed", "detail": "Look at the shapes."},
    ]
    return not_run(name) | {
        "status": status,
        "seconds": 31.4,
        "peak_memory_mb": 512.5,
        "error": error,
        "checkpoints": checks,
        "exercises": {"1a": "passed", "1b": "not attempted"},
        "results": {n: {"value": v, "unit": "examples/s"} for n, v in figures.items()},
    }


def a_run(repeats=1, slower=1.0):
    """What results.json may hold, good and bad."""
    error = {
        "cell": "In [3]: train(state)",
        "message": "ValueError: " + "long_words_without_a_break_" * 8,
        "hint": "Use a smaller batch.",
    }
    attempts = [entry("01_good", spare=5_000.0 + n) for n in range(repeats)]
    good = merged(attempts) | {"repeats": attempts} if repeats > 1 else attempts[0]
    bad = entry("02_bad", "failed", error, **{"jit throughput": 300_000.0 / slower})
    facts = {
        "started": "2026-01-01T00:00:00+00:00",
        "python": "3.11.7",
        "git_commit": "0123456789abcdef" * 2,
        "git_dirty": True,
        "repeat": repeats,
    }
    lessons = [good, bad, not_run("03_left")]
    return {"parameters": {"PROFILE": "cpu"}, "environment": facts, "notebooks": lessons}


@pytest.fixture(scope="module", params=["report", "repeated report", "comparison"])
def path(request, tmp_path_factory):
    """A page in a file."""
    folder = tmp_path_factory.mktemp("page")
    if request.param == "comparison":
        for name, slower in (("a", 1.0), ("b", 2.0)):
            (folder / name).mkdir()
            results = a_run(slower=slower)
            results["notebooks"][1]["status"] = "passed"
            results["notebooks"][0]["checkpoints"][1]["passed"] = name == "a"
            results["environment"]["jax"] = name
            (folder / name / "results.json").write_text(json.dumps(results))
        assert compare.main([str(folder / "a"), str(folder / "b")]) == 1
        return folder / "b" / "compared-with-a.html"
    page = folder / "index.html"
    page.write_text(report.render(a_run(3 if "repeated" in request.param else 1), folder))
    return page


def test_the_validator_finds_nothing(path):
    done = subprocess.run([*validator(), path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def open_page(browser, path):
    """Open the page; fails if it asks the network for anything or logs an error."""
    pages, asked = [], []

    def start(scheme="light", width=1200):
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(message.text))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield start
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    for page in pages:
        page.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing(open_page, scheme, width):
    assert violations(open_page(scheme, WIDTHS[width])) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_theme_of_the_reader_is_followed(open_page, scheme):
    page = open_page(scheme)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, colour[4:-1].split(","))) > 600) == (scheme == "light")


def test_a_narrow_page_does_not_scroll_sideways(open_page):
    page = open_page(width=WIDTHS["narrow"])
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS["narrow"]


def test_paper_is_white_and_shows_what_the_screen_folds_away(open_page):
    page = open_page("dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 35, 40)"
    heights = page.evaluate(
        "[...document.querySelectorAll('details ul')].map(list => list.offsetHeight)"
    )
    assert all(height > 0 for height in heights)


def test_everything_can_be_reached_by_keyboard(open_page):
    page = open_page()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert "SECTION" in reached  # tables that may scroll
    if page.locator("summary").count():
        assert {"A", "SUMMARY"} <= reached
