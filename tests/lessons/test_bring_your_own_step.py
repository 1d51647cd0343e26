"""Lesson 11 on any number of devices, and what its checkpoints must notice."""

import pytest
from lesson_files import NOTEBOOKS, code_cells, in_test_profile
from nbclient.exceptions import CellExecutionError
from test_lessons import execute, run_headless

LESSON = NOTEBOOKS / "11_bring_your_own_step.ipynb"


@pytest.mark.parametrize("devices", ["1", "3", "8"])
def test_it_ends_green_on_any_number_of_devices(devices, tmp_path):
    results = run_headless(LESSON, tmp_path / "runs", "--devices", devices, cwd=tmp_path)
    assert results["environment"]["device_count"] == int(devices)


def up_to(start, old, new):
    """The lesson in its test profile up to the cell that starts so, with one piece replaced."""
    notebook = in_test_profile(LESSON)
    (cell,) = [c for c in notebook.cells if c.cell_type == "code" and old in c.source]
    cell.source = cell.source.replace(old, new)
    (last,) = [i for i, c in enumerate(notebook.cells) if c.source.startswith(start)]
    notebook.cells = notebook.cells[: last + 1]
    return notebook


OWN_COPY = (
    'with respect to its own copy, averaged."""\n    varying = jax.lax.pcast(state[0], "data", '
)


@pytest.mark.parametrize(
    ("start", "old", "new", "said"),
    [
        (
            "def split_and_reduce",
            OWN_COPY + 'to="varying")',
            'averaged."""\n    varying = state[0]',
            "Piece 1: .*Summed instead of averaged",
        ),
        (
            "for name, (rows, mask) in padded",
            "return (losses * mask).sum(), losses",
            "return losses.sum(), losses",
            "Piece 4: .* padding",
        ),
        (
            "reference_step = ",
            'return draw_by_example(key, examples, "data")',
            "return draw_by_example(key, examples)",
            "Piece 5: .*same random key on every device",
        ),
        (
            "def attempt",
            'pmean((loss, grads), "data")\n    return updated(state, grads), {"loss": loss}\n\n\nplain',
            'pmean((loss, jax.tree.map(lambda g: g / n, grads)), "data")\n'
            '    return updated(state, grads), {"loss": loss}\n\n\nplain',
            "The first attempt is refused",
        ),
    ],
    ids=["summed already", "no mask", "one key for all", "no fault where one is taught"],
)
def test_its_checkpoints_notice_a_fault_that_is_planted_and_one_that_is_gone(
    start, old, new, said, tmp_path
):
    with pytest.raises(CellExecutionError, match=rf"(?s)CheckpointFailed.*{said}"):
        execute(up_to(start, old, new), cwd=tmp_path)


def test_it_says_why_it_shows_no_times_of_simulated_devices():
    assert any("nothing is said of speed" in cell.source for cell in code_cells(LESSON))
