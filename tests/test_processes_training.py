"""What many processes compute: the sums, the parameters, and both again after a kill."""

import re
from pathlib import Path

import jax
import numpy as np
import optax
import psutil
import pytest

from course_utils import fashion_mnist
from course_utils.models import mlp
from course_utils.processes import ProcessFailed, launch, saving
from course_utils.processes.training import own_rows

WORKER = ["-m", "course_utils.processes.worker"]
DYING = str(Path(__file__).with_name("dying_worker.py"))
PAIRS, BATCH, STEPS, RATE, SAMPLE = 20_000, 512, 13, 0.1, 6000  # an epoch has 11 batches
OPTIONS = [f"--pairs={PAIRS}", f"--batch={BATCH}", f"--learning-rate={RATE}", "--log-every=4"]
TRAINING = [*OPTIONS, f"--steps={STEPS}", "--checkpoint-every=5"]
# A proxy that leads nowhere: gRPC must not ask it for the way to this machine.
ENVIRONMENT = {"FASHION_MNIST_SOURCES": "sample", "http_proxy": "http://192.0.2.1:3128"}


@pytest.fixture(scope="module", autouse=True)
def compile_once(tmp_path_factory):
    """The runs are many and the programs few."""
    ENVIRONMENT["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path_factory.mktemp("compiled"))
    ENVIRONMENT["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    ENVIRONMENT["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def run(arguments, processes=2, devices=2, echo=lambda line: None):
    return launch(arguments, processes, devices, 120, environment=ENVIRONMENT, echo=echo)


def read(path):
    with np.load(path) as file:
        return [file[name] for name in sorted(file.files) if name.startswith("arr_")]


def listening():
    """The addresses at which this process's descendants listen."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        connections = process.net_connections("inet")
        found |= {c.laddr for c in connections if c.status == psutil.CONN_LISTEN}
    return found


@pytest.fixture(scope="module")
def two_by_two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two_by_two")
    sockets = set()

    def look(line):
        if "local sum" in line:
            sockets.update(listening())

    files = [f"--output={folder / 'params.npz'}", f"--checkpoint={folder / 'state.npz'}"]
    return run([*WORKER, *TRAINING, *files], echo=look), read(folder / "params.npz"), sockets


@pytest.fixture(scope="module")
def four_by_one(tmp_path_factory):
    output = tmp_path_factory.mktemp("four_by_one") / "params.npz"
    return run([*WORKER, *TRAINING, f"--output={output}"], 4, 1), read(output)


@pytest.fixture(scope="module")
def one_process():
    """The parameters of the step of lesson 01, on one device, after the same global batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASHION_MNIST_SOURCES", "sample")
        data = fashion_mnist.load()
    optimizer = optax.sgd(RATE, 0.9)
    step = mlp.make_train_step(mlp.loss_and_accuracy, optimizer)
    params = mlp.init_params(jax.random.key(1), (784, 256, 128, 10))
    state = mlp.init_state(params, optimizer, jax.devices()[0])
    orders = [np.random.default_rng(epoch).permutation(SAMPLE) for epoch in range(2)]
    for number in range(STEPS):
        epoch, first = number // 11, number % 11 * BATCH
        rows = orders[epoch][first : first + BATCH]
        images = mlp.to_model_input(data.train_images[rows])
        state, _ = step(state, (images, data.train_labels[rows].astype(np.int32)))
    return jax.tree.leaves(jax.device_get(state[0]))


def said_sums(finished):
    text = "\n".join(finished.lines)
    found = re.search(r"local sum (\S+), global sum (\S+)", text)
    return float(found[1]), float(found[2])


def check_sums(runs):
    expected = []
    for index in range(len(runs)):
        keys = jax.random.split(jax.random.key(42 + 10 * index))
        x, y = (np.asarray(jax.random.normal(key, (PAIRS, 3)), np.float64) for key in keys)
        expected.append((x * y).sum())
    sums = [said_sums(finished) for finished in runs]
    np.testing.assert_allclose([own for own, _ in sums], expected, rtol=1e-5)
    np.testing.assert_allclose([total for _, total in sums], sum(expected), rtol=1e-5)


def check_parameters(found, expected):
    assert [leaf.shape for leaf in found] == [leaf.shape for leaf in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()


def test_two_processes_with_two_devices_give_numpys_sums(two_by_two):
    check_sums(two_by_two[0])


def test_four_processes_with_one_device_give_numpys_sums(four_by_one):
    check_sums(four_by_one[0])


def test_two_processes_with_two_devices_train_the_parameters_of_one(two_by_two, one_process):
    check_parameters(two_by_two[1], one_process)


def test_four_processes_with_one_device_train_the_parameters_of_one(four_by_one, one_process):
    check_parameters(four_by_one[1], one_process)


def test_a_step_has_exactly_one_all_reduce_over_all_devices(two_by_two, four_by_one):
    for runs in (two_by_two[0], four_by_one[0]):
        text = "\n".join(runs[0].lines)
        assert "each step communicates: 1 all-reduce of 0.94 MB over 4 devices\n" in text


def test_only_process_0_logs_the_training(two_by_two):
    first, second = ("\n".join(process.lines) for process in two_by_two[0])
    assert re.findall(r"step (\d+): loss", first) == ["4", "8", "12", "13"]
    assert re.findall(r"step (\d+): saved", first) == ["5", "10", "13"]
    assert "THIS IS A SAMPLE" in first
    assert "step" not in second
    assert "SAMPLE" not in second


def test_the_processes_listen_on_loopback_only(two_by_two):
    addresses = {address.ip.removeprefix("::ffff:") for address in two_by_two[2]}
    assert addresses == {"127.0.0.1"}
    joining = re.search(r"joining at 127.0.0.1:(\d+)", "\n".join(two_by_two[0][0].lines))
    assert int(joining[1]) in {address.port for address in two_by_two[2]}


def test_a_run_killed_twice_goes_on_to_the_same_parameters_bit_for_bit(two_by_two, tmp_path):
    output = tmp_path / "params.npz"
    options = [*TRAINING, f"--checkpoint={tmp_path / 'state.npz'}", f"--output={output}"]
    with pytest.raises(ProcessFailed, match="process 1 of 2 was ended by SIGKILL"):
        run([DYING, "step 8", "1", *options])
    with pytest.raises(ProcessFailed, match="process 0 of 2 was ended by SIGKILL") as second:
        run([DYING, "save 1", "0", *options])  # goes on from step 5, dies while it saves step 10
    assert "training from step 5 to 13" in second.value.finished[0].lines
    assert not output.exists()
    finished = run([*WORKER, *options])
    assert "training from step 5 to 13" in finished[0].lines
    for resumed, uninterrupted in zip(read(output), two_by_two[1], strict=True):
        assert resumed.tobytes() == uninterrupted.tobytes()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_the_global_batch_is_the_same_for_every_process_count(count):
    for step in (0, 10, 11, 25):
        parts = [own_rows(step, SAMPLE, 504, process, count) for process in range(count)]
        whole = own_rows(step, SAMPLE, 504, 0, 1)
        assert {len(part) for part in parts} == {504 // count}
        assert len(set(whole)) == 504
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_checkpoint_keeps_every_bit(tmp_path):
    state = {"a": np.float32([-0.0, np.nan, np.inf, 1e-45]), "b": np.int32(7)}
    saving.save(tmp_path / "state.npz", 3, state, {"batch": 1})
    fresh = jax.tree.map(np.zeros_like, state)
    step, loaded = saving.resume(tmp_path / "state.npz", fresh, {"batch": 1})
    assert step == 3
    assert loaded["a"].tobytes() == state["a"].tobytes()
    assert loaded["b"] == 7
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


def test_without_a_checkpoint_a_run_starts_afresh(tmp_path):
    fresh = (np.float32([1, 2]),)
    for path in (None, tmp_path / "state.npz"):
        step, state = saving.resume(path, fresh, {})
        assert step == 0
        np.testing.assert_array_equal(state[0], fresh[0])


def test_a_checkpoint_of_another_run_is_refused_with_a_cure(tmp_path):
    saving.save(tmp_path / "state.npz", 3, (np.float32(1),), {"batch size": 512})
    with pytest.raises(ValueError, match=r"has \{'batch size': 512\}, this run .*another file"):
        saving.resume(tmp_path / "state.npz", (np.float32(1),), {"batch size": 256})
