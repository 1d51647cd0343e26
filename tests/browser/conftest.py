"""A browser, and the course's JupyterLab with a copy of the lessons in their test profile."""

import nbformat
import pytest
from browsing import ARGUMENTS, chromium
from lab_server import jupyter_lab
from lesson_files import LESSONS, in_test_profile

pytest.register_assert_rewrite("lesson_promises")


@pytest.fixture(scope="module")
def browser():
    # Not for the whole session: while it lives, nothing else in the process can use asyncio.
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: make setup")
    where = chromium()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=where, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    place = tmp_path_factory.mktemp("lab")
    notebooks = place / "course" / "notebooks"
    notebooks.mkdir(parents=True)
    for lesson in LESSONS:
        nbformat.write(in_test_profile(lesson), notebooks / lesson.name)
    with jupyter_lab(place, notebooks.parent) as server:
        yield server
