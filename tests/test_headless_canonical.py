"""Notebooks have one committed form; it is checked, fixed, and its kept outputs remade."""

import json
import signal

import nbformat
import pytest
from headless_lab import Lab
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.headless import canonical as command
from course_utils.headless.form import canonical, problems

MARK = "# NBVAL_CHECK_OUTPUT\n"


@pytest.fixture
def messy():
    """A notebook as editors leave it."""
    result = new_output("execute_result", {"text/plain": "4"}, execution_count=17)
    cells = [
        new_markdown_cell("# Größe  \ntext\n\n", metadata={"editable": True}),
        new_code_cell("A = 1", metadata={"tags": ["parameters"], "x": 1}),
        new_code_cell(MARK + "2 + 2", outputs=[result], execution_count=17),
        new_code_cell("print(1)", outputs=[new_output("stream", text="1\n")], execution_count=3),
        new_code_cell(""),
    ]
    metadata = {"kernelspec": {"name": "mine", "display_name": "Mine"}, "jupytext": {}}
    return json.loads(nbformat.writes(new_notebook(cells=cells, metadata=metadata)))


def fixed(notebook):
    return json.loads(canonical(json.dumps(notebook)))


def test_the_form_is_the_same_after_a_second_fix(messy):
    once = canonical(json.dumps(messy))
    assert canonical(once) == once
    assert problems(once) == []
    nbformat.validate(json.loads(once))


def test_the_form_is_nbformat_4_5_with_fixed_metadata(messy):
    notebook = fixed(messy)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def test_the_bytes_are_sorted_indented_by_one_unescaped_and_end_in_a_newline(messy):
    text = canonical(json.dumps(messy))
    again = json.dumps(json.loads(text), sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert text == again
    assert "Größe" in text


def test_only_tags_are_kept_of_a_cells_metadata(messy):
    metadata = [cell["metadata"] for cell in fixed(messy)["cells"]]
    assert metadata == [{}, {"tags": ["parameters"]}, {}, {}, {}]


def test_trailing_whitespace_goes(messy):
    assert fixed(messy)["cells"][0]["source"] == ["# Größe\n", "text"]


def test_outputs_are_kept_only_where_nbval_compares_them(messy):
    cells = fixed(messy)["cells"][1:]
    assert [len(cell["outputs"]) for cell in cells] == [0, 1, 0, 0]
    assert [cell["execution_count"] for cell in cells] == [None, 2, None, None]
    assert cells[1]["outputs"][0]["execution_count"] == 2


def test_valid_ids_are_kept(messy):
    before = [cell["id"] for cell in messy["cells"]]
    assert [cell["id"] for cell in fixed(messy)["cells"]] == before


def test_missing_repeated_and_invalid_ids_are_made_anew_and_always_the_same(messy):
    del messy["cells"][0]["id"]
    messy["cells"][1]["id"] = "not valid!"
    messy["cells"][3]["id"] = messy["cells"][2]["id"]
    messy["cells"] += [{**cell, "id": ""} for cell in messy["cells"]]
    ids = [cell["id"] for cell in fixed(messy)["cells"]]
    assert len(set(ids)) == 10
    assert ids[2] == messy["cells"][2]["id"]
    assert ids == [cell["id"] for cell in fixed(messy)["cells"]]


def test_a_notebook_of_format_4_4_without_ids_becomes_4_5(messy):
    messy["nbformat_minor"] = 4
    for cell in messy["cells"]:
        del cell["id"]
    assert problems(json.dumps(messy))
    nbformat.validate(fixed(messy))


def test_pasted_images_stay(messy):
    messy["cells"][0]["attachments"] = {"a.png": {"image/png": "AA=="}}
    assert fixed(messy)["cells"][0]["attachments"] == {"a.png": {"image/png": "AA=="}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda n: n["metadata"].update(x=1), "metadata of the notebook"),
        (lambda n: n.update(nbformat_minor=4), "nbformat_minor of the notebook"),
        (lambda n: n["cells"][0].update(source=["a \n", "b"]), "cell 1: source"),
        (lambda n: n["cells"][1]["metadata"].update(x=1), "cell 2: metadata"),
        (lambda n: n["cells"][1].update(id=n["cells"][0]["id"]), "cell 2: id"),
        (lambda n: n["cells"][2].update(outputs=[]), "cell 3: execution_count"),
        (lambda n: n["cells"][3].update(execution_count=1), "cell 4: execution_count"),
        (lambda n: n["cells"][3].update(outputs=n["cells"][2]["outputs"]), "cell 4: outputs"),
    ],
)
def test_the_first_difference_is_named(messy, change, said):
    notebook = fixed(messy)
    change(notebook)
    text = json.dumps(notebook, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert problems(text)[0] == said


def test_a_difference_in_bytes_alone_is_named(messy):
    text = canonical(json.dumps(messy))
    for changed in (text[:-1], text.replace("\n ", "\n  "), text.replace("ö", "\\u00f6")):
        assert problems(changed) == ["order of keys, indent, escapes or final newline"]


def test_a_marked_cell_without_output_is_named_for_nbval_would_compare_nothing(messy):
    messy["cells"][2]["outputs"] = []
    (problem,) = problems(canonical(json.dumps(messy)))
    assert problem.startswith("cell 3: marked NBVAL_CHECK_OUTPUT, but no output is kept")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "{'a': 1}", '{"nbformat": 3}', '{"nbformat": 4, "cells": 1}'),
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}',
    ],
)
def test_what_is_no_notebook_is_a_problem_not_a_crash(text):
    assert len(problems(text)) == 1
    with pytest.raises(ValueError, match=r"."):
        canonical(text)


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_kept", MARK + "print(RATE)\nSTEPS", "print('not kept')", MARK + "DEVICES")
    lab.lesson("02_broken", MARK + "1 / 0")
    return lab


@pytest.fixture
def restored_signals():
    """The command takes over signals; pytest gets them back."""
    before = {number: signal.getsignal(number) for number in (1, 2, 15)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(lab, *options):
    return command.main([*options, "--notebooks", str(lab.notebooks)])


def test_check_lists_what_is_not_in_form_and_changes_nothing(lab, capsys):
    before = [path.read_bytes() for path in sorted(lab.notebooks.iterdir())]
    assert run(lab, "--check") == 1
    said = capsys.readouterr().out
    assert "01_kept.ipynb: metadata of the notebook (and" in said
    assert "2 of 2 notebooks are not in committed form: make notebooks" in said
    assert before == [path.read_bytes() for path in sorted(lab.notebooks.iterdir())]


def test_fix_makes_check_pass(lab):
    path = lab.lesson("03_plain", "1")
    assert command.main(["--fix", str(path)]) == 0
    assert command.main(["--check", str(path)]) == 0


def test_a_fix_of_what_is_in_form_writes_nothing(lab):
    path = lab.lesson("03_plain", "1")
    command.main(["--fix", str(path)])
    before = path.stat()
    command.main(["--fix", str(path)])
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_no_notebook_at_all_is_an_error(tmp_path, capsys):
    assert command.main(["--check", "--notebooks", str(tmp_path)]) == 2
    assert "No lessons" in capsys.readouterr().err


def test_refresh_stores_the_outputs_of_the_marked_cells(lab, monkeypatch, restored_signals):
    monkeypatch.setenv("REFRESH", "01")
    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    lab.lesson("01_kept", MARK + "import os\nos.environ['JAX_PLATFORMS']", "7", MARK + "RATE")
    assert run(lab, "--fix") == 0
    path = lab.notebooks / "01_kept.ipynb"
    cells = json.loads(path.read_text())["cells"][3:]
    shown = [[output["data"]["text/plain"] for output in cell["outputs"]] for cell in cells]
    assert shown == [[["'cpu'"]], [], [["0.1"]]]
    assert [cell["execution_count"] for cell in cells] == [3, None, 5]
    assert command.main(["--check", str(path)]) == 0


def test_a_lesson_that_does_not_run_keeps_its_outputs(lab, capsys, restored_signals):
    before = (lab.notebooks / "02_broken.ipynb").read_bytes()
    assert run(lab, "--fix", "--refresh", "2") == 2
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert (lab.notebooks / "02_broken.ipynb").read_bytes() == before
