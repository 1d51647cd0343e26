"""What a participant does in JupyterLab besides running a lesson once, and who can't get in."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.parse
from pathlib import Path

import nbformat
import psutil
import pytest
from lab_page import Window
from process_marks import Mark

from course_utils.exercises import solutions

FIRST, LEFT, RIGHT = (
    f"notebooks/{name}.ipynb" for name in ("00_start_here", "02_bfloat16", "03_confusion_matrix")
)
# A Python that has all but the course.
WITHOUT_THE_COURSE = """
import sys
sys.modules["course_utils"] = None
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""


@pytest.fixture
def window(browser, server):
    with Window(browser, server) as window:
        yield window
    server.end_kernels()


@pytest.mark.parametrize("token", ["", "wrong"], ids=["no token", "a wrong token"])
def test_without_its_token_jupyterlab_gives_nothing_away(server, token):
    assert server.ask("api/status", server.token)[0] == 200
    for path in ("api/status", "api/contents/notebooks", "api/sessions"):
        assert server.ask(path, token)[0] == 403
    assert server.ask("api/kernels", token, "POST")[0] == 403
    assert server.kernels() == []


@pytest.mark.parametrize("query", ["", "?token=wrong"], ids=["no token", "a wrong token"])
@pytest.mark.parametrize("page", ["lab/tree", "files"])
def test_without_its_token_a_page_asks_for_it(window, page, query):
    window.page.goto(f"{window.server.url}{page}/{FIRST}{query}")
    assert urllib.parse.urlparse(window.page.url).path == "/login"
    assert window.page.locator("#password_input").is_visible()
    assert window.page.evaluate("window.jupyterapp === undefined")


def test_this_machine_alone_can_reach_the_server_and_its_kernels(window):
    window.open(FIRST)
    server = psutil.Process(window.server.pid)
    family = [server, *server.children(recursive=True)]
    listening = [c for p in family for c in p.net_connections("inet") if c.status == "LISTEN"]
    assert len(listening) > 1  # the kernel's, too
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}


def test_two_lessons_that_are_open_at_once_both_run_to_their_end(window):
    first = window.open(LEFT)
    window.choose("Run", "Run All Cells")
    first.page.locator(f".jp-MarkdownOutput a[href*='{Path(RIGHT).name}']").first.click()
    second = window.lesson(RIGHT)
    assert not first.ask("finished")
    second.run_all()
    first.wait_until_finished()
    for lesson in (first, second):
        assert lesson.ask("errors") == []
        assert all(cell["count"] for cell in lesson.ask("cells"))
    assert len(window.server.kernels()) == 2


def test_restart_and_run_all_starts_afresh_and_reaches_the_end_again(window):
    lesson = window.open(FIRST)
    last = len(lesson.ask("cells"))
    lesson.run_until(last // 2)
    assert lesson.run_cell(0)["count"] == last // 2 + 1
    window.choose("Kernel", "Restart Kernel and Run All Cells…")
    window.page.locator(".jp-Dialog .jp-mod-accept").click()
    lesson.wait_until("course.codeCells(path)[0].model.executionCount === 1")
    lesson.wait_until_finished()
    assert lesson.ask("errors") == []
    assert [cell["count"] for cell in lesson.ask("cells")] == list(range(1, last + 1))


def test_who_closes_a_saved_lesson_and_comes_back_finds_it_as_it_was(browser, window):
    lesson = window.open(FIRST)
    lesson.run_all()
    lesson.save()
    before = [lesson.ask("kernelId"), lesson.ask("cells"), lesson.ask("tables")]
    window.choose("File", "Close Tab")
    lesson.wait_until("!course.panel(path)")
    window.page.locator(".jp-DirListing-item", has_text=Path(FIRST).name).dblclick()
    again = window.lesson(FIRST)
    assert [again.ask("kernelId"), again.ask("cells"), again.ask("tables")] == before
    window.context.close()
    with Window(browser, window.server) as another:
        again = another.open(FIRST)
        assert [again.ask("kernelId"), again.ask("cells"), again.ask("tables")] == before
        # The cell before the last one needs what others have computed.
        cells = before[1]
        assert again.run_cell(len(cells) - 2)["outputs"] == cells[-2]["outputs"]


HASTY = """
def pure_step(loss_fn, params, batch, rate):
    grads, _ = jax.grad(loss_fn, has_aux=True)(params, batch)
    for layer, grad in zip(params, grads):
        layer["W"] = layer["W"] - rate * grad["W"]
        layer["b"] = layer["b"] - rate * grad["b"]
    return params, loss_fn(params, batch)[0]


exercise("01.1").check(pure_step, loss_fn=loss_and_accuracy, params=params, batch=batch)
""".strip()


def test_an_exercise_answers_a_wrong_attempt_gives_a_hint_and_takes_the_right_one(window):
    lesson = window.open("notebooks/01_training_loop.ipynb")
    number = lesson.number_of('exercise("01.1").check(')
    lesson.run_until(number)

    def said_to(source: str) -> str:
        lesson.type(number, source)
        lesson.run_cell(number)
        for theme in ("dark", "light"):
            window.theme(theme)
            assert min(text["ratio"] for text in lesson.ask("contrasts")) >= 4.5
        return lesson.ask("shown", number)

    untouched = lesson.ask("cells")[number]["source"]
    assert "Not attempted yet" in said_to(untouched)
    wrong = said_to(HASTY)
    assert "not yet right" in wrong
    assert "changed in place" in wrong
    assert "jax.tree.map" not in wrong  # the way out is the learner's to find
    assert "hint 1 of 2" in said_to('exercise("01.1").hint()')
    assert "not yet right" in said_to(HASTY)
    solved = said_to(solutions.find("01.1").code)
    assert "solved" in solved
    assert re.search(r"\b1 of \d+", solved)  # how far one is
    assert lesson.ask("errors") == []


def test_in_a_python_without_the_course_a_lesson_says_what_to_do(window):
    server = window.server
    kernel = {"argv": [sys.executable, "-c", WITHOUT_THE_COURSE, "-f", "{connection_file}"]}
    spec = server.home / ".local/share/jupyter/kernels/without"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps(kernel | {"display_name": "no course"}))
    notebook = nbformat.read(server.root / FIRST, as_version=4)
    notebook.metadata.kernelspec = {"name": "without", "display_name": "no course"}
    (server.root / "elsewhere").mkdir()
    nbformat.write(notebook, server.root / "elsewhere/lesson.ipynb")
    lesson = window.open("elsewhere/lesson.ipynb")
    lesson.run_all()
    error, *others = lesson.ask("errors")
    assert "make lab" in error["evalue"]
    shown = window.page.locator(".jp-OutputArea-output", has_text="make lab").last
    assert shown.is_visible()
    # A kernel drops the cells that wait for it when one fails. On a busy machine JupyterLab sends the
    # last of them after that: these run, and miss the names that the failed one was to import.
    assert all(other["ename"] == "NameError" for other in others)


STARTS = """
    import signal, sys, time
    from pathlib import Path
    from lab_server import jupyter_lab

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    with jupyter_lab(Path(sys.argv[1]), Path(sys.argv[1])) as server:
        assert server.ask("api/kernels", server.token, "POST")[0] == 201
        print("running", flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_tests_that_are_interrupted_or_killed_leave_nothing_running(tmp_path, how):
    mark = Mark()
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STARTS), str(tmp_path)],
        cwd=Path(__file__).parent,
        env=os.environ | mark.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as tests:
        assert tests.stdout.readline() == "running\n"
        assert len(mark.alive()) >= 3  # the launcher, the server, a kernel
        tests.send_signal(how)
        try:
            tests.wait(60)
        finally:
            tests.kill()
    assert mark.wait_until_gone(30) == []
