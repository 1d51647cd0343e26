"""Lessons 04 to 06 on any number of devices, and what they must catch if a fault creeps back."""

import json

import jax
import nbformat
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from lesson_files import NOTEBOOKS, code_cells, in_test_profile
from nbclient.exceptions import CellExecutionError
from test_lessons import execute, run_headless

from course_utils.equivalence import assert_equal_to_one_device
from course_utils.hlo import collectives
from course_utils.models.mlp import init_state, make_train_step
from course_utils.models.shard_map_step import make_shard_map_step
from course_utils.models.shared_block import init_params, make_loss

LESSONS = [
    NOTEBOOKS / f"{name}.ipynb"
    for name in ("04_mesh_and_sharding", "05_shard_map", "06_batch_sweep")
]


@pytest.mark.parametrize("devices", ["1", "3", "8"])
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_ends_green_on_any_number_of_devices(lesson, devices, tmp_path):
    results = run_headless(lesson, tmp_path / "runs", "--devices", devices, cwd=tmp_path)
    assert results["environment"]["device_count"] == int(devices)
    if devices == "3" and lesson == LESSONS[2]:  # its batch sizes are powers of two
        (executed,) = tmp_path.glob(f"runs/2*/{lesson.name}")
        shown = executed.read_text()
        assert "skipped: 16 doesn't divide by 3 devices" in shown
        assert "batch 15, done" in shown


def changed(lesson, old, new):
    """The lesson in its test profile, with one piece of its code replaced."""
    notebook = in_test_profile(lesson)
    (cell,) = [c for c in notebook.cells if c.cell_type == "code" and old in c.source]
    cell.source = cell.source.replace(old, new)
    return notebook


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The published step: the gradient of replicated parameters, averaged once more.
        ('varying = jax.lax.pcast(params, "data", to="varying")', "varying = params"),
        ("(loss, accuracy), grads = jax.lax.pmean(", "(loss, accuracy), grads = jax.lax.psum("),
    ],
    ids=["summed already", "psum for pmean"],
)
def test_lesson_05_fails_if_a_gradient_times_n_creeps_back(old, new, tmp_path):
    with pytest.raises(CellExecutionError, match=r"(?i)summed instead of averaged"):
        execute(changed(LESSONS[1], old, new), cwd=tmp_path)


def test_a_planted_out_of_memory_is_a_row_of_the_sweep_and_the_others_are_measured(tmp_path):
    notebook = in_test_profile(LESSONS[2])
    (sweep,) = [i for i, c in enumerate(notebook.cells) if c.source.startswith("def attempt(")]
    plant = nbformat.v4.new_code_cell(
        "real_run = run\n"
        "def run(some_devices, global_batch, **options):\n"
        "    if global_batch == 64:\n"
        "        raise jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: Out of memory (planted)')\n"
        "    return real_run(some_devices, global_batch, **options)\n"
    )
    notebook.cells.insert(sweep, plant)
    shown = json.dumps([c.get("outputs", []) for c in execute(notebook, cwd=tmp_path).cells])
    assert "batch 64, failed: out of memory" in shown
    assert all(f"batch {size}, done" in shown for size in (16, 32, 128))


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8])
def test_the_explicit_step_is_one_all_reduce_of_gradients_and_metrics_and_equals_one_device(count):
    mesh = Mesh(np.array(jax.devices()[:count]), ("data",))
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    loss, optimizer = make_loss(5, 0.1), optax.sgd(0.1)
    state = init_state(init_params(jax.random.key(1), 16), optimizer, whole)
    random = np.random.default_rng(count)
    images = random.random((4 * count, 784), np.float32)
    batch = jax.device_put((images, random.integers(0, 10, 4 * count, np.int32)), split)
    step = make_shard_map_step(loss, optimizer, mesh)

    (only,) = collectives(step.lower(state, batch).compile())
    gradients = sum(x.nbytes for x in jax.tree.leaves(state[0]))
    assert (only.kind, only.executions, only.group_size) == ("all-reduce", 1, count)
    assert only.bytes == gradients + 8  # loss and accuracy, float32

    reference = make_train_step(loss, optimizer)
    first = assert_equal_to_one_device(step, state, batch, reference=reference, steps=1)
    assert first.worst.relative_error <= 1e-5
    # Later metrics are those of parameters that have already moved apart by their rounding.
    later = assert_equal_to_one_device(step, state, batch, reference=reference, steps=10)
    errors = [leaf.relative_error for leaf in later.leaves if leaf.path.startswith("state")]
    assert max(errors) <= 1e-5


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_says_why_it_shows_no_times_of_simulated_devices(lesson):
    assert any("nothing is said of speed" in cell.source for cell in code_cells(lesson))
