"""Lessons with odd numbers in JupyterLab; lesson_promises.py says what is asked of them."""

import pytest
from lesson_files import LESSONS
from lesson_promises import *  # noqa: F403
from solved_lessons import opened_and_run


@pytest.fixture(scope="module", params=LESSONS[1::2], ids=lambda path: path.stem)
def lesson(request, browser, server):
    yield from opened_and_run(request.param.name, browser, server)
