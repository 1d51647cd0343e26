"""The benchmarks: fair turns, honest statistics, a gate that names who differs, no figure by hand."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import bench_variants
import numpy as np
import pytest
from process_marks import Mark

from benchmarks import __main__ as command
from benchmarks import equality, figures, gpu, group, lesson_10, plot, problem, readme, tables
from benchmarks.crew import Crew
from benchmarks.groups import accuracy as groups_accuracy
from benchmarks.groups import imports, step
from benchmarks.steps import matmuls, timed
from benchmarks.tasks import accuracy
from benchmarks.variant import ROOT, Variant
from course_utils.hlo import text as hlo_text

HERE = Path(__file__).parent


def variant(kind, name="", *arguments, **options):
    """A variant of bench_variants, which its process finds through PYTHONPATH."""
    target = f"bench_variants:{kind}"
    environment = {"PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}"} | options.pop("environment", {})
    return Variant(
        name or kind, f"the {kind}", target, arguments, environment=environment, **options
    )


def small_group(*variants, **options):
    defaults = {
        "name": "small",
        "title": "Small",
        "how": "In turns.",
        "columns": ["rounds"],
        "rounds": 3,
        "quick_rounds": 2,
        "claims": lambda rounds: [],
        "patience": 20,
    }
    return group.Group(variants=variants, **defaults | options)


def silent(line):
    pass


# --- statistics


def test_a_figure_is_the_median_with_the_extremes_and_their_number():
    assert figures.figure([3.0, 1.0, 100.0]) == {"median": 3.0, "min": 1.0, "max": 100.0, "n": 3}
    with pytest.raises(ValueError, match="at least one sample"):
        figures.figure([])


def test_figures_are_kept_for_each_variant_and_quantity():
    rounds = [{"a": {"ms": 1, "MB": 7}, "b": {"ms": 5}}, {"a": {"ms": 3}}]
    found = figures.per_variant(rounds)
    assert found["a"]["ms"] == {"median": 2, "min": 1, "max": 3, "n": 2}
    assert found["a"]["MB"]["n"] == 1
    assert found["b"]["ms"]["n"] == 1


def test_ratios_pair_what_one_round_measured():
    # A busy second round slows both: the ratio doesn't see it. The third lacks one side.
    rounds = [
        {"a": {"ms": 2}, "b": {"ms": 1}},
        {"a": {"ms": 20}, "b": {"ms": 10}},
        {"a": {"ms": 9}},
    ]
    assert figures.paired_ratio(rounds, "a", "b", "ms") == {"median": 2, "min": 2, "max": 2, "n": 2}
    assert figures.paired_ratio(rounds, "a", "missing", "ms") is None


@pytest.mark.parametrize(
    ("relation", "median", "holds"),
    [(">=", 1.3, True), (">=", 1.29, False), ("<=", 1.3, True), ("<=", 1.31, False)],
)
def test_a_claim_is_judged_by_its_median(relation, median, holds):
    found = {"median": median, "min": 0, "max": 9, "n": 5}
    claim = figures.claim("faster", found, relation, 1.3)
    assert claim == {"text": "faster", "figure": found, "wanted": f"{relation} 1.3", "holds": holds}


def test_a_claim_does_not_hold_if_a_round_never_got_there():
    found = figures.figure([2.0, 2.0])
    assert figures.claim("soon", found, "<=", 3, of=2)["holds"]
    assert not figures.claim("soon", found, "<=", 3, of=3)["holds"]


def test_a_claim_of_what_was_not_measured_does_not_hold_and_says_so():
    claim = figures.claim("soon", None, "<=", 3)
    assert not claim["holds"]
    lines = tables.claims_table([{"claims": [claim]}])
    assert lines[-1] == "| soon | <= 3 | not measured |  |"


def test_the_step_is_set_against_the_faster_matmuls_of_the_same_round():
    answers = {
        name: {step.TIME: t} for name, t in (("matmuls-openblas", 2.0), ("matmuls-jax", 3.0))
    }
    answers["fused"] = {step.TIME: 2.5}
    assert step.derive(answers)["fused"][step.FRACTION] == pytest.approx(0.8)
    assert answers["fused"][step.RATE] == pytest.approx(512 / 0.0025)


def test_without_both_matmuls_there_is_no_limit():
    """The slower of them alone would be a lower one, and the step look better."""
    answers = {"matmuls-jax": {step.TIME: 3.0}, "fused": {step.TIME: 2.5}}
    assert step.FRACTION not in step.derive(answers)["fused"]


# --- processes


def test_each_variant_has_a_process_that_lives_through_its_rounds():
    found = group.measure(
        small_group(variant("Steady", "one"), variant("Steady", "two", "x"), facts=True),
        quick=False,
        say=silent,
    )
    one, two = found["rows"]
    assert one["figures"]["rounds"] == {"median": 2, "min": 1, "max": 3, "n": 3}
    assert one["figures"]["process"]["min"] == one["figures"]["process"]["max"]
    assert one["figures"]["process"] != two["figures"]["process"]
    assert two["facts"] == {"arguments": ["x"]}


def test_fresh_variants_get_a_new_process_each_round():
    fresh = small_group(variant("Steady"), fresh=True, prepared=False)
    (row,) = group.measure(fresh, quick=True, say=silent)["rows"]
    assert row["figures"]["rounds"] == {"median": 1, "min": 1, "max": 1, "n": 2}
    assert row["figures"]["process"]["min"] != row["figures"]["process"]["max"]


def test_new_processes_take_over_when_those_before_have_lived_their_rounds():
    """What one process happens to get, of memory for one, isn't what its variant is like."""
    renewed = small_group(variant("Steady"), rounds=5, lifetime=2)
    asked = []

    class Watched(Crew):
        def each(self, method, said=silent):
            answers = super().each(method, said)
            asked.append((method, answers["Steady"] and answers["Steady"]["process"]))
            return answers

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group, "Crew", Watched)
        (row,) = group.measure(renewed, quick=False, say=silent)["rows"]
    assert [method for method, _ in asked] == [
        *["prepare", "round", "round"] * 2,
        "prepare",
        "round",
    ]
    processes = [process for method, process in asked if method == "round"]
    assert processes[0] == processes[1] != processes[2] == processes[3] != processes[4]
    assert row["figures"]["prepared"] == {"median": 1, "min": 1, "max": 1, "n": 5}


def test_turns_alternate_their_order():
    order = []

    class Watched(Crew):
        def _worker(self, variant):
            order.append(variant.name)
            return super()._worker(variant)

    with Watched([variant("Steady", "one"), variant("Steady", "two")]) as crew:
        crew.each("round")
        crew.each("round")
    assert order == ["one", "two", "two", "one"]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("Raises", "ValueError: no batch | left"),
        ("Crashes", "its process ended with status 7: about to fall over"),
        ("Hangs", "no answer within 3 s: ended"),
        ("Unheard", "AttributeError: module 'bench_variants' has no attribute 'Unheard'"),
        ("NeverEnds", "it hung up, but its process didn't end: ended"),
        ("Unreadable", "its answer can't be read: No module named 'known_to_nobody_else'"),
    ],
)
def test_a_variant_in_trouble_is_a_row_with_its_error_and_leaves_nothing(kind, says):
    mark = Mark()
    troubled = variant(kind, environment=mark.environment)
    patient = small_group(variant("Steady"), troubled, prepared=False, patience=3)
    found = group.measure(patient, quick=True, say=silent)
    well, ill = found["rows"]
    assert well["error"] is None
    assert well["figures"]["rounds"]["n"] == 2
    assert ill["error"] == says
    assert ill["figures"] == {}
    assert group.failures(found) == [f"small: the {kind}: {says}"]
    assert not mark.wait_until_gone()


def test_a_variant_that_fails_later_has_no_part_in_a_claim():
    def claims(rounds):
        return [
            figures.claim(name, figures.samples(rounds, name, "rounds"), ">=", 1)
            for name in ("well", "ill")
        ]

    ways = variant("Steady", "well"), variant("FailsInItsSecondProcess", "ill")
    found = group.measure(small_group(*ways, claims=claims, lifetime=2), quick=False, say=silent)
    assert found["rows"][1]["error"] == "RuntimeError: not again"
    assert found["rows"][1]["figures"] == {}
    assert [claim["holds"] for claim in found["claims"]] == [True, False]


def test_a_long_folder_for_scratch_is_no_obstacle(monkeypatch, tmp_path):
    deep = tmp_path / ("long-" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    (row,) = group.measure(small_group(variant("Steady")), quick=True, say=silent)["rows"]
    assert row["error"] is None


def test_a_peer_that_is_not_installed_is_a_row_and_no_failure():
    absent = variant("Steady", needs="a_package_that_nobody_has")
    found = group.measure(small_group(absent), quick=True, say=silent)
    assert found["rows"][0]["error"] == "not installed"
    assert group.failures(found) == []
    assert "not installed" in "\n".join(tables.group_table(found | {"columns": ["rounds"]}))


def test_limits_that_others_set_do_not_reach_the_variants(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "8")
    # Without bytecode every import would compile its sources again, and its time would say so.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    others = {"OMP_NUM_THREADS", "JAX_NUM_CPU_DEVICES", "PYTHONDONTWRITEBYTECODE"}
    for name in ("JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION", "MALLOC_TRIM_THRESHOLD_"):
        monkeypatch.setenv(name, "1")
        others.add(name)
    environment = variant("Steady").process_environment(tmp_path)
    assert not others & set(environment)
    assert environment["JAX_PLATFORMS"] == "cpu"


# --- the gate


def gate(*ways):
    """The comparison of the group `step`, among these ways."""
    reference = variant("Train", "reference", "reference")
    with pytest.MonkeyPatch.context() as patch, Crew(ways, patience=60) as crew:
        patch.setattr(step, "REFERENCE", reference)
        return step.compare_those(ways, {}, crew, silent)


def test_ways_that_compute_the_same_pass():
    (row,) = gate(variant("Train", "good"))
    assert row["name"] == "good"
    assert 0 < row["difference"] < equality.TOLERANCE


@pytest.mark.parametrize(
    ("fault", "leaf"), [("off", "W of layer 1: 1.0e-03"), ("nan", "b of layer 2: nan")]
)
def test_a_way_that_differs_is_named_and_nothing_is_timed(fault, leaf):
    with pytest.raises(equality.Different, match=r"They were not timed") as raised:
        gate(variant("Train", "good"), variant("Train", "bad", fault))
    assert f"bad ({leaf})" in str(raised.value)
    assert "good" not in str(raised.value)


def test_a_way_that_differs_costs_its_group_and_the_status(monkeypatch, tmp_path, capsys):
    ways = (variant("Train", "bad", "off"),)
    check = lambda crew, say: step.compare_those(ways, {}, crew, say)  # noqa: E731
    monkeypatch.setattr(step, "REFERENCE", variant("Train", "reference", "reference"))
    monkeypatch.setitem(command.GROUPS, "step", small_group(*ways, check=check))
    monkeypatch.setattr(command.fashion_mnist, "load", lambda allow_sample: None)
    monkeypatch.setitem(command.GROUPS, "other", small_group(variant("Steady"), name="other"))
    monkeypatch.setattr(command, "QUICK", tmp_path)
    assert command.main(["--quick", "--groups", "step", "other"]) == 1
    assert "small: After the same steps" in (said := capsys.readouterr().out)
    assert "bad (W of layer 1" in said
    (kept,) = json.loads((tmp_path / "results.json").read_text())["groups"]
    assert kept["name"] == "other"


def test_fewer_bits_are_accepted_only_where_they_are_announced():
    rows = [{"name": "low", "leaf": "W of layer 0", "difference": 4e-3}]
    equality.judge(rows, {"low": 0.05})
    with pytest.raises(equality.Different, match="low"):
        equality.judge(rows, {"other": 0.05})


def test_a_leaf_of_the_wrong_shape_differs():
    start = problem.initial_layers((4, 3, 2))
    moved = [(weight + 1, bias + 1) for weight, bias in start]
    turned = [(weight.T, bias) for weight, bias in moved]
    (row,) = equality.differences(start, moved, {"turned": turned})
    assert row["difference"] == np.inf


WAYS_HERE = {way.name: way.arguments for way in step.WAYS if way.name not in ("torch-compile",)}


@pytest.mark.parametrize("name", WAYS_HERE)
def test_each_way_takes_the_same_steps(name):
    way = next(way for way in step.WAYS if way.name == name)
    if way.needs:
        pytest.importorskip(way.needs)
    module, _, kind = way.arguments[0].partition(":")
    make = getattr(pytest.importorskip(module), kind)
    task = bench_variants.small_problem()
    rows = task.rows[: problem.SGD_STEPS]
    trained = {}
    for name, options in (("reference", ("float64",)), (way.name, way.arguments[1:])):
        chosen = bench_variants.numpy_loop.Loop if name == "reference" else make
        run = chosen(task, "sgd", rows, *options)
        run.epoch()
        trained[name] = run.parameters()
    rows = equality.differences(task.layers, trained.pop("reference"), trained)
    equality.judge(rows)


def test_the_limit_of_jax_is_eight_whole_products_in_every_step():
    """A compiler could take them out of the loop, or make only what somebody reads."""
    task = problem.make(np.zeros((64, 28, 28), np.uint8), np.zeros(64, np.uint8), 32, problem.SIZES)
    alone = matmuls.OnJAX(task, "", task.rows)
    module = hlo_text.parse(alone.program.lower(alone.operands).compile().as_text())
    everything = [i for c in module.computations.values() for i in c.instructions.values()]
    (loop,) = [i for i in everything if i.opcode == "while"]
    body = module.called_once(loop, "body").instructions.values()
    inside = [*body]
    for instruction in body:
        for computation in module.called(instruction, "calls"):
            inside += computation.instructions.values()
    dots = sorted(i.shape.partition("{")[0] for i in inside if i.opcode == "dot")
    pairs = [matmuls.oriented(*product) for product in matmuls.products(task, 32)]
    whole = [left @ right for left, right in pairs]
    assert dots == sorted(f"f32[{a.shape[0]},{a.shape[1]}]" for a in whole)
    assert len([i for i in everything if i.opcode == "dot"]) == len(dots) == 8
    alone.epoch()
    alone.epoch()
    assert all(np.isfinite(a).all() for a in alone.operands.values())


def test_a_round_is_the_median_of_epochs_after_one_that_is_not_timed(monkeypatch):
    happened = []
    clock = iter([0.0, 5.0, 10.0, 11.0, 20.0, 22.0])  # seconds: epochs of 5, 1 and 2
    read = SimpleNamespace(perf_counter=lambda: happened.append("clock") or next(clock))
    monkeypatch.setattr(timed, "time", read)
    task = timed.Timed.__new__(timed.Timed)
    task._problem = bench_variants.small_problem()
    task._timed = SimpleNamespace(epoch=lambda: happened.append("epoch"))
    assert task.round() == {timed.TIME: 2000 / len(task._problem.rows)}
    assert happened == ["epoch", *["clock", "epoch", "clock"] * 3]


# --- what is written


def results(**row):
    """A small run's results."""
    figure = {"median": 4.123456, "min": 3.9, "max": 12345.6, "n": 5}
    rows = [
        {"name": "fused", "label": "ours", "error": None, "figures": {"ms": figure}, "facts": {}},
        {"name": "x", "label": "x", "error": "not installed", "figures": {}, "facts": {}} | row,
    ]
    one = {
        "name": "step",
        "title": "The step",
        "how": "In turns.",
        "columns": ["ms", step.FRACTION],
        "compared": [],
        "rows": rows,
        "claims": [figures.claim("faster", figure, ">=", 1.3)],
    }
    return {
        "machine": {"processor": "A", "cores": 2, "memory GB": 24, "system": "Linux x86_64"},
        "versions": {"jax": "0.10.2", "torch": None},
        "date": "2026-01-02 03:04 UTC",
        "commit": "abc",
        "groups": [one],
    }


def test_the_readme_says_what_was_measured_and_where():
    text = readme.section(results(), None)
    assert "| ours | 4.12 (3.90\u201312,300) |" in text
    assert "| x | not installed |" in text
    assert "| faster | >= 1.3 | 4.12 (3.90\u201312,300) | yes |" in text
    assert "2 cores of A, 24 GB, Linux x86_64, on 2026-01-02 03:04 UTC at commit abc" in text
    assert "jax 0.10.2" in text
    assert "torch" not in text
    assert "Figures on a GPU are still to be measured." in text


def test_without_results_the_readme_says_so():
    assert "Still to be measured." in readme.section(None, None)
    assert "| GPU | 1 |" in readme.section(None, "| GPU | 1 |\n")


def test_an_error_cannot_break_the_table():
    rows = tables.group_table(results(error="ValueError: a | b <c>")["groups"][0])
    assert rows[-1].startswith("| x | ValueError: a \\| b &lt;c> |")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (129, "129"), (0.8512, "0.851"), (102_345, "102,000"), (99.96, "100"), (5.0, "5")],
)
def test_numbers_have_three_digits(value, text):
    assert tables.number(value) == text


def test_only_the_section_is_renewed():
    text = f"# Title\n\n{readme.START}\nold\n{readme.END}\n\nrest\n"
    fresh = readme.section(results(), None)
    assert readme.renewed(text, fresh) == f"# Title\n\n{fresh}\n\nrest\n"
    for broken in ("no marks", f"{readme.END} {readme.START}", text + text):
        with pytest.raises(ValueError, match=r"README\.md needs these two lines"):
            readme.renewed(broken, fresh)


def test_the_readmes_figures_are_those_of_the_committed_results():
    text = (ROOT / "README.md").read_text()
    assert readme.renewed(text, readme.current()) == text, "run: python -m benchmarks.readme"


def test_the_committed_report_and_results_agree():
    if not readme.RESULTS.exists():
        pytest.skip("nothing has been measured yet")
    found = json.loads(readme.RESULTS.read_text())
    assert (ROOT / "benchmarks/results.md").read_text() == tables.report(found)
    assert not found["quick"]
    assert {one["name"] for one in found["groups"]} == set(command.GROUPS)
    for one in found["groups"]:  # a procedure that has changed asks for a new measurement
        assert one["how"] == command.GROUPS[one["name"]].how


def test_a_run_writes_results_a_report_and_a_picture(tmp_path):
    found = results()
    found["groups"][0]["rows"][0]["figures"][step.FRACTION] = {
        "median": 0.84,
        "min": 0.8,
        "max": 0.9,
        "n": 5,
    }
    command.save(found, tmp_path)
    assert json.loads((tmp_path / "results.json").read_text()) == found
    assert "| ours | 4.12" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "results.png").read_bytes().startswith(b"\x89PNG")
    assert plot.in_words(found) == "Fraction of the matmul limit: ours 0.840."


# --- the command


def test_make_bench_uses_an_environment_of_its_own():
    done = subprocess.run(
        ["make", "-n", "--assume-old=.venv-bench/.installed", "bench", "QUICK=1", "ONLY=step"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ".venv-bench/bin/python -m benchmarks --quick --groups step" in done.stdout
    assert ".venv/bin/python -m benchmarks" not in done.stdout


def test_an_unknown_group_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["--groups", "stpe"])
    said = capsys.readouterr().err
    assert "no group is called stpe: there are step, accuracy, loading" in said


def test_a_zero_is_no_wish_for_a_quick_run():
    asked = ["make", "-n", "--assume-old=.venv-bench/.installed", "bench", "QUICK=0"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--quick" not in done.stdout


def test_hurried_runs_and_parts_never_reach_the_readme(monkeypatch, tmp_path):
    monkeypatch.setitem(command.GROUPS, "step", small_group(variant("Steady")))
    monkeypatch.setattr(command, "QUICK", tmp_path / "quick")
    monkeypatch.setattr(command.fashion_mnist, "load", lambda allow_sample: None)
    monkeypatch.setattr(readme, "write", lambda: pytest.fail("README.md was written"))
    for arguments in (["--quick", "--groups", "step"], ["--groups", "step"]):
        assert command.main(arguments) == 0
    assert (tmp_path / "quick/results.json").exists()


def test_a_whole_run_brings_the_readme_up_to_date(monkeypatch, tmp_path):
    (tmp_path / "README.md").write_text(f"before\n{readme.START}\n{readme.END}\nafter\n")
    monkeypatch.setattr(command, "GROUPS", {"small": small_group(variant("Steady"))})
    monkeypatch.setattr(command, "HERE", tmp_path)
    monkeypatch.setattr(command.fashion_mnist, "load", lambda allow_sample: None)
    for name, file in (("README", "README.md"), ("RESULTS", "results.json"), ("GPU_TABLE", "no")):
        monkeypatch.setattr(readme, name, tmp_path / file)
    assert command.main([]) == 0
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| the Steady | 2 (1\u20133) |" in text
    assert (tmp_path / "results.md").exists()


def test_a_run_in_which_something_failed_replaces_no_figures(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "GROUPS", {"small": small_group(variant("Raises"))})
    monkeypatch.setattr(command, "HERE", tmp_path / "kept")
    monkeypatch.setattr(command, "QUICK", tmp_path / "quick")
    monkeypatch.setattr(command.fashion_mnist, "load", lambda allow_sample: None)
    monkeypatch.setattr(readme, "write", lambda: pytest.fail("README.md was written"))
    assert command.main([]) == 1
    assert not (tmp_path / "kept").exists()
    assert (tmp_path / "quick/results.json").exists()


def test_a_full_disk_leaves_the_readme_and_the_results_as_they_were(tmp_path):
    """Killed in the middle of a large write, with a limit of a few kilobytes for each file."""
    (tmp_path / "README.md").write_text(before := f"{'x' * 9000}\n{readme.START}\n{readme.END}\n")
    (tmp_path / "results.json").write_text("{}")
    code = """
        import json, pathlib, resource, signal, sys
        from benchmarks import __main__ as command, readme
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        folder = pathlib.Path(sys.argv[1])
        found = json.loads(readme.RESULTS.read_text())
        readme.README = folder / "README.md"
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        for write in (readme.write, lambda: command.save(found, folder)):
            try:
                write()
            except OSError:
                print("refused")
    """
    run = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused", "refused"]
    assert (tmp_path / "README.md").read_text() == before
    assert (tmp_path / "results.json").read_text() == "{}"


def test_a_variant_that_crashed_makes_the_run_fail_after_writing(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(command.GROUPS, "step", small_group(variant("Crashes"), prepared=False))
    monkeypatch.setattr(command, "QUICK", tmp_path)
    monkeypatch.setattr(command.fashion_mnist, "load", lambda allow_sample: None)
    assert command.main(["--groups", "step"]) == 1
    assert "small: the Crashes: its process ended with status 7" in capsys.readouterr().out
    assert (tmp_path / "results.md").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_it_finds_no_process_no_folder_and_nothing_written(how, tmp_path):
    mark = Mark()
    code = """
        import bench_variants, test_benchmarks as t
        from benchmarks import __main__ as command
        command.end_in_order()
        hanging = t.small_group(t.variant("Hangs"), prepared=False, patience=300)
        command.GROUPS["step"] = hanging
        command.fashion_mnist.load = lambda allow_sample: None
        raise SystemExit(command.main(["--groups", "step"]))
    """
    path = f"{HERE}{os.pathsep}{ROOT}"
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | mark.environment | {"PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "round 1" not in started.stdout.readline():
        assert started.poll() is None
    # Bench, guard, worker, and what the worker has started.
    deadline = time.monotonic() + 60
    while len(mark.alive()) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(how)
    said = started.communicate(timeout=60)[1]
    assert started.returncode == 130, said
    assert "Stopped; nothing was written." in said
    assert not mark.wait_until_gone()
    assert not list(tmp_path.glob("jax-course-bench-*"))


# --- single groups


def test_what_lessons_import_is_read_from_their_cells(tmp_path):
    lesson = tmp_path / "01.ipynb"
    code = "import jax\nfrom course_utils import fashion_mnist\nfrom course_utils.timing import measure"
    cells = [
        {"cell_type": "markdown", "source": ["from course_utils.no import way"]},
        {"cell_type": "code", "source": [code]},
    ]
    lesson.write_text(json.dumps({"cells": cells}))
    assert imports.imported_by(lesson) == {"course_utils.fashion_mnist", "course_utils.timing"}


def test_all_lessons_import_at_least_what_lesson_01_does():
    one, every = imports.modules_of("01_*.ipynb"), imports.modules_of("*.ipynb")
    assert "course_utils.timing" in one
    assert set(one) < set(every)


def test_the_process_that_times_imports_has_imported_nothing_of_ours():
    code = (
        "import sys, benchmarks.worker, benchmarks.tasks.imports\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('course_utils', 'numpy', 'jax')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_recipe_that_is_timed_is_the_last_rung_of_lesson_10s_ladder():
    cells = [
        "FULL_SIZES = {'PEAK_RATE': 0.005, 'EPOCHS': 6}",
        "LESSON_01 = {'peak': 3e-3, 'average': 0.0}",
        "CHANGES = {'lesson 01': {}, 'decay': {'peak': config.PEAK_RATE}, 'last': {'average': 0.9}}",
    ]
    notebook = {"cells": [{"cell_type": "code", "source": [cell]} for cell in cells]}
    found = lesson_10.read(notebook)
    assert found["RECIPE"] == {"peak": 0.005, "average": 0.9}
    assert found["EPOCHS"] == 6
    notebook["cells"].pop()
    with pytest.raises(LookupError, match="no longer assigns CHANGES"):
        lesson_10.read(notebook)


def test_the_lesson_has_what_the_recipe_is_read_from():
    found = lesson_10.constants()
    assert {"schedule", "peak", "weight decay", "smoothing", "average"} <= set(found["RECIPE"])
    assert found["LAB_STEPS"] == accuracy.LAB_STEPS


def test_a_target_that_was_not_reached_is_left_out():
    found = accuracy.summary([(1.0, 87.0), (2.0, 88.5), (3.0, 88.1)])
    assert found == {accuracy.SECONDS: 3.0, accuracy.FINAL: 88.1, accuracy.to_reach(88): 2.0}


def test_times_to_accuracy_are_set_against_the_labs_run_of_the_same_round():
    answers = {"lab": {accuracy.SECONDS: 2.0}, "fast": {accuracy.to_reach(90): 3.0}}
    derived = groups_accuracy.derive(answers)["fast"]
    assert derived[groups_accuracy.in_lab_runs(90)] == 1.5
    assert groups_accuracy.in_lab_runs(88) not in derived


def test_the_gpu_script_runs_without_the_courses_environment(tmp_path):
    # Only what a plain installation of JAX and Optax brings may be imported.
    blocked = "import sys\nfor name in ('psutil', 'filelock', 'matplotlib', 'IPython', 'requests', "
    blocked += "'tqdm', 'rich', 'papermill', 'torch', 'keras'):\n    sys.modules[name] = None\n"
    script = str(ROOT / "benchmarks/gpu.py")
    arguments = ["--rounds", "1", "--matmul", "64", "--examples", "5120", "--lab-steps", "25"]
    arguments += ["--epochs", "1"]
    run = f"sys.argv = {[script, *arguments]}\nimport runpy\nrunpy.run_path({script!r}, run_name='__main__')"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", blocked + run],
        cwd=tmp_path,
        env=environment | {"JAX_PLATFORMS": "cpu", "FASHION_MNIST_SOURCES": "sample"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "**cpu**" in done.stdout
    assert "This is the bundled sample" in done.stdout
    for row in ("| fused epoch, bfloat16 |", "| cold |", "| warm |", "| lesson 10's recipe |"):
        assert row in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rounds", "0"], "--rounds is 0: 1 is the least"),
        (["--lab-steps", "10"], "--lab-steps is 10: 25 is the least"),
        (["--examples", "100"], "--examples is 100: 512 is the least"),
        (["--matmul", "0"], "--matmul is 0: 1 is the least"),
        (["--epochs", "some"], "--epochs: invalid int value: 'some'"),
        (["--write", "--rounds", "1"], "--write keeps figures of the usual size: --rounds 11"),
    ],
)
def test_the_gpu_script_refuses_at_once_what_it_cannot_measure_with(arguments, says, capsys):
    with pytest.raises(SystemExit):
        gpu.parse(arguments)
    assert says in capsys.readouterr().err


def test_figures_of_a_cpu_do_not_pass_for_a_gpus(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--write"])
    for name in ("XLA_PYTHON_CLIENT_PREALLOCATE", "FASHION_MNIST_SOURCES"):
        monkeypatch.setenv(name, os.environ.get(name, "false"))
    with pytest.raises(SystemExit, match=r"--write keeps figures of a GPU .* JAX found cpu"):
        gpu.main()


def test_every_variant_of_a_group_has_a_name_of_its_own():
    assert len(command.GROUPS) == 7  # two groups of one name would be one
    for each in command.GROUPS.values():
        names = [one.name for one in each.variants]
        assert len(names) == len(set(names))
        assert each.quick_rounds < each.rounds
