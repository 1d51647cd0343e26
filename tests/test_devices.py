"""`request_devices` finds or simulates devices, and says so; wrong moments and hopes are errors."""

import subprocess
from importlib import metadata
from types import SimpleNamespace

import jax
import pytest
from processes import run_python

from course_utils import devices as devices_module
from course_utils import gpu_diagnosis
from course_utils.devices import choose_profile, environment, request_devices, simulated

ASK = "from course_utils.devices import request_devices as ask\n"


@pytest.mark.parametrize("count", [1, 2, 3, 6, 8])
def test_any_number_of_devices_can_be_simulated(count):
    result = run_python(ASK + f"print(len(ask({count})))")
    assert result.stdout.split()[-1] == str(count), result.stderr


def test_count_zero_gives_what_the_lesson_needs_at_least():
    result = run_python(ASK + "print(len(ask(min_count=4)))")
    assert result.stdout.split()[-1] == "4", result.stderr


def test_one_plain_line_says_that_simulated_timings_mean_nothing(capsys):
    request_devices(4)
    line = capsys.readouterr().out
    assert "4 simulated CPU devices" in line
    assert "timings say nothing about speed" in line
    assert line.count("\n") == 1


def test_a_single_cpu_is_not_called_simulated(capsys):
    (device,) = request_devices(1)
    assert device.platform == "cpu"
    assert "No GPU in use" in capsys.readouterr().out


def test_asking_again_is_fine_so_that_a_cell_can_run_twice():
    result = run_python(ASK + "print(ask(3) == ask(3) and ask(2) == ask(3)[:2])")
    assert result.stdout.split()[-1] == "True", result.stderr


def test_asking_too_late_says_restart_the_kernel():
    result = run_python("import jax; jax.devices()\n" + ASK + "ask(4)")
    assert result.returncode == 1
    assert "4 devices were asked for, but JAX has already started with 1" in result.stderr
    assert "Restart the kernel" in result.stderr


def test_other_xla_flags_are_kept_and_the_old_count_flag_gives_way():
    code = ASK + "import os; print(len(ask(4))); print(os.environ['XLA_FLAGS'])"
    flags = "--xla_cpu_enable_fast_math=false --xla_force_host_platform_device_count=2"
    result = run_python(code, XLA_FLAGS=flags)
    assert result.stdout.splitlines()[-2:] == ["4", "--xla_cpu_enable_fast_math=false"]


def test_a_count_flag_that_suffices_is_left_alone():
    flags = "--xla_force_host_platform_device_count=6"
    result = run_python(ASK + "print(len(ask(4)))", XLA_FLAGS=flags)
    assert result.stdout.split()[-1] == "4", result.stderr


@pytest.mark.parametrize(
    ("count", "min_count", "message"),
    [(-1, 1, "DEVICES is -1"), (2, 0, "min_count >= 1"), (1, 2, "needs at least 2")],
)
def test_impossible_counts_are_named(count, min_count, message):
    with pytest.raises(ValueError, match=message):
        request_devices(count, min_count)


def test_a_platform_list_without_the_cpu_cannot_simulate(monkeypatch):
    gpu = SimpleNamespace(platform="gpu", device_kind="Test GPU")
    _pretend(monkeypatch, [gpu], cpus=RuntimeError("unknown backend"))
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(RuntimeError, match="leaves out the CPU"):
        request_devices(2)


def _pretend(monkeypatch, found, cpus=()):
    """Let JAX report `found` as its devices, without a GPU."""

    def listed(backend=None):
        if backend is None:
            return list(found)
        if isinstance(cpus, Exception):
            raise cpus
        return list(cpus)

    monkeypatch.setattr(devices_module.jax, "devices", listed)


def test_all_gpus_are_taken_when_there_are_enough(monkeypatch, capsys):
    gpus = [SimpleNamespace(platform="gpu", device_kind="Test GPU") for _ in range(4)]
    _pretend(monkeypatch, gpus)
    assert request_devices(min_count=2) == gpus
    assert "4 GPUs: Test GPU" in capsys.readouterr().out
    assert request_devices(2) == gpus[:2]


def test_too_few_gpus_give_way_to_simulated_devices_and_new_arrays_follow(monkeypatch):
    cpus = jax.devices("cpu")
    _pretend(monkeypatch, [SimpleNamespace(platform="gpu", device_kind="Test GPU")], cpus)
    try:
        assert request_devices(min_count=2) == cpus[:2]
        assert jax.config.jax_default_device == cpus[0]
    finally:
        jax.config.update("jax_default_device", None)


def test_expected_gpus_that_are_missing_are_an_error_with_a_cause(monkeypatch):
    monkeypatch.setenv("EXPECT_GPUS", "2")
    with pytest.raises(RuntimeError, match="EXPECT_GPUS asks for 2 GPUs, but JAX sees 0") as error:
        request_devices(1)
    assert "\n  - JAX_PLATFORMS is 'cpu'" in str(error.value)


def test_expected_gpus_that_are_there_are_fine(monkeypatch):
    gpus = [SimpleNamespace(platform="gpu", device_kind="Test GPU")] * 2
    _pretend(monkeypatch, gpus)
    monkeypatch.setenv("EXPECT_GPUS", "2")
    assert request_devices() == gpus


@pytest.mark.parametrize("text", ["two", "-1", "1.5"])
def test_an_expectation_that_is_no_number_is_named(monkeypatch, text):
    monkeypatch.setenv("EXPECT_GPUS", text)
    with pytest.raises(ValueError, match="EXPECT_GPUS"):
        request_devices(1)


CPU = [SimpleNamespace(platform="cpu", device_kind="cpu")]
GPU = [SimpleNamespace(platform="gpu", device_kind="Test GPU")]
PROFILES = {"gpu": {"SIZE": 8, "STEPS": 2}, "cpu": {"SIZE": 4, "STEPS": 2}, "test": {"SIZE": 1}}


def test_auto_follows_the_device_and_a_turned_knob_wins():
    assert choose_profile("auto", PROFILES, CPU).SIZE == 4
    assert choose_profile("auto", PROFILES, GPU).PROFILE == "gpu"
    config = choose_profile("gpu", PROFILES, CPU, SIZE=3, STEPS=None)
    assert (config.SIZE, config.STEPS) == (3, 2)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "big", float("inf")])
def test_a_knob_that_is_no_positive_whole_number_is_named(value):
    with pytest.raises(ValueError, match=r"SIZE is .*; it takes a whole number above 0, such as 4"):
        choose_profile("cpu", PROFILES, CPU, SIZE=value)


def test_a_knob_with_a_fraction_takes_any_positive_number():
    profiles = {"cpu": {"RATE": 0.1}}
    assert choose_profile("cpu", profiles, CPU, RATE=1).RATE == 1
    with pytest.raises(ValueError, match="RATE is nan; it takes a number above 0"):
        choose_profile("cpu", profiles, CPU, RATE=float("nan"))


def test_an_unknown_profile_lists_the_valid_ones():
    with pytest.raises(ValueError, match="'cppu'; this lesson has 'auto', 'gpu', 'cpu', 'test'"):
        choose_profile("cppu", PROFILES, CPU)


def test_an_unknown_knob_is_an_error():
    with pytest.raises(ValueError, match="SZIE"):
        choose_profile("cpu", PROFILES, CPU, SZIE=3)


def test_the_environment_names_versions_devices_and_machine():
    facts = environment(jax.devices()[:2])
    assert facts["jax"] == jax.__version__
    assert facts["device_count"] == 2
    assert facts["simulated"] is True
    assert facts["cores"] >= 1
    assert simulated(GPU * 2) is False


# --- the causes that a missing GPU is traced to -------------------------------------------------


@pytest.fixture
def healthy(monkeypatch):
    """A machine on which no check finds a fault."""
    for name in ("JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    versions = {"jax-cuda12-plugin": "0.10.2", "jaxlib": "0.10.2"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(gpu_diagnosis, "driver_version", lambda: "550.90")
    monkeypatch.setattr(gpu_diagnosis.metadata, "version", version)
    return versions


def test_a_healthy_machine_is_told_how_to_ask_jax(healthy):
    (advice,) = gpu_diagnosis.gpu_problems()
    assert "JAX_PLATFORMS=cuda" in advice


@pytest.mark.parametrize(
    ("variable", "value", "cure"),
    [
        ("JAX_PLATFORMS", "cpu", "unset it"),
        ("CUDA_VISIBLE_DEVICES", "", "hides every GPU"),
        ("CUDA_VISIBLE_DEVICES", "-1", "hides every GPU"),
        ("LD_LIBRARY_PATH", "/opt/x:/usr/local/cuda-11/lib64", "/usr/local/cuda-11/lib64"),
    ],
)
def test_each_environment_variable_that_hides_gpus_is_named(
    healthy, monkeypatch, variable, value, cure
):
    monkeypatch.setenv(variable, value)
    (problem,) = gpu_diagnosis.gpu_problems()
    assert variable in problem
    assert cure in problem


@pytest.mark.parametrize("value", ["cuda", "cuda,cpu", "gpu"])
def test_a_platform_list_with_the_gpu_is_no_problem(healthy, monkeypatch, value):
    monkeypatch.setenv("JAX_PLATFORMS", value)
    assert "no usual cause" in gpu_diagnosis.gpu_problems()[0]


def test_a_missing_and_an_unlike_plugin_are_named_with_both_versions(healthy):
    healthy["jax-cuda12-plugin"] = "0.9.0"
    (problem,) = gpu_diagnosis.gpu_problems()
    assert "0.9.0" in problem
    assert "0.10.2" in problem
    del healthy["jax-cuda12-plugin"]
    (problem,) = gpu_diagnosis.gpu_problems()
    assert "requirements.txt" in problem


def test_no_driver_and_an_old_driver_are_named(healthy, monkeypatch):
    monkeypatch.setattr(gpu_diagnosis, "driver_version", lambda: None)
    assert "nvidia-smi" in gpu_diagnosis.gpu_problems()[0]
    monkeypatch.setattr(gpu_diagnosis, "driver_version", lambda: "470.82.01")
    assert "470.82.01" in gpu_diagnosis.gpu_problems()[0]


@pytest.mark.parametrize(
    ("outcome", "version"),
    [
        (FileNotFoundError(), None),
        (subprocess.TimeoutExpired("nvidia-smi", 20), None),
        (subprocess.CalledProcessError(9, "nvidia-smi"), None),
        (SimpleNamespace(stdout=""), None),
        (SimpleNamespace(stdout="550.90\n550.90\n"), "550.90"),
    ],
)
def test_a_driver_that_does_not_answer_is_no_driver(monkeypatch, outcome, version):
    def answer(*_, **__):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(gpu_diagnosis.subprocess, "run", answer)
    assert gpu_diagnosis.driver_version() == version
