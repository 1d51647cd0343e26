"""index.html of a run: what people read, whatever the lessons did."""

import copy
import itertools
import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import html5lib
import pytest
from headless_lab import REPORTS, Lab, alive, pids, strict_json, until

from course_utils.headless import figures, report, resume
from course_utils.headless.flood import Meter
from course_utils.headless.repeats import file_name, merged, not_run, still_to_run

pytestmark = pytest.mark.any_python

# One worker: another would run the module's lessons again.

PLOT = """
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
from course_utils.display import show_figure
figure, axes = plt.subplots()
axes.plot([1, 2])
show_figure(figure, alt='A line that rises, <b>"steeply"</b> & for ever')
"""
GOOD = """
checkpoint("it adds up", 1 + 1 == 2)
record("speed, eager", 100.0, unit="examples/s")
record("speed, jit", 400.0, unit="examples/s")
record("test accuracy", 0.75)
record("rows", 3)
record("verdict", "<script>alert(1)</script>")
record_environment("here", jax="9.9", jaxlib="9.9", backend="cpu", device_kind="cpu", device_count=2,
                   simulated=True, driver=None, dataset="<none>")
"""
ENDLESS = "import os, pathlib\npathlib.Path('kernel.pid').write_text(str(os.getpid()))\n"
ENDLESS += "while not pathlib.Path('go').exists(): pass"


def page_of(lab):
    return (lab.latest / "index.html").read_text(encoding="utf-8")


def parsed(page):
    """The page as a tree; html5lib's strict parser refuses what a validator would."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def words(element):
    return " ".join("".join(element.itertext()).split())


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """One run with everything that can go right and wrong; each test reads its part."""
    lab = Lab(tmp_path_factory.mktemp("report"))
    lab.lesson("01_good", REPORTS, GOOD, PLOT)
    lab.lesson("02_raises", "raise ValueError('<img src=x> & co')")
    lab.lesson("03_checkpoint", REPORTS, "checkpoint('loss falls', False, 'Lower RATE.')")
    lab.lesson("04_killed", "import os; os.kill(os.getpid(), 9)")
    lab.lesson("05_endless", "while True: pass")
    lab.lesson("06_floods", "print('x' * 100_000_000)\nprint('more')", "1")
    lab.lesson("07_floods_in_pieces", "for _ in range(100_000): print('x' * 1_000)")
    (lab.notebooks / "08_broken.ipynb").write_text("{'not': json")
    lab.lesson("09_no_parameters", "1", parameters=None)
    lab.lesson("10_last", "1")
    lab.status, lab.said = lab.run("--cell-timeout", "15", "--param", "RATE=1")
    return lab


@pytest.fixture
def entry(lab):
    return {lesson["name"]: lesson for lesson in lab.results()["notebooks"]}


@pytest.fixture
def tree(lab):
    return parsed(page_of(lab))


def test_every_catastrophe_leaves_a_row_and_the_other_lessons_running(lab, entry):
    assert lab.status == 1
    assert {name: lesson["status"] for name, lesson in entry.items()} == {
        "01_good": "passed",
        "02_raises": "failed",
        "03_checkpoint": "failed",
        "04_killed": "failed",
        "05_endless": "timeout",
        "06_floods": "failed",
        "07_floods_in_pieces": "failed",
        "08_broken": "failed",
        "09_no_parameters": "failed",
        "10_last": "passed",
    }


def test_the_table_has_a_row_for_each_lesson_with_its_status(entry, tree):
    table = next(t for t in tree.iter("table") if t.get("class") == "lessons")
    rows = [[words(cell) for cell in row] for row in table.find("tbody")]
    # A lesson is called by its title, or by its file where it has none to read.
    assert [row[0].split()[0] for row in rows] == list(entry)
    for row, lesson in zip(rows, entry.values(), strict=True):
        assert row[1].split(maxsplit=1)[1] == lesson["status"]
    assert rows[0][4] == "1 of 1"
    assert re.fullmatch(r"\d+ MB", rows[0][5])


def test_failures_stand_first_with_cell_message_and_hint(tree):
    main = next(tree.iter("main"))
    assert words(main[0].find("h2")) == "What went wrong"
    boxes = {words(box.find("h3")): words(box) for box in main[0].iter("article")}
    assert list(boxes)[1] == "03_checkpoint: ✗ failed"
    box = boxes["03_checkpoint: ✗ failed"]
    assert "In cell In [4]: checkpoint('loss falls'" in box
    assert "CheckpointFailed: loss falls" in box
    assert "Hint: Lower RATE." in box
    assert "The kernel died (SIGKILL)." in boxes["04_killed: ✗ failed"]
    assert "ran longer than 15 s" in boxes["05_endless: ✗ timeout"]
    assert "is not a readable notebook" in boxes["08_broken: ✗ failed"]
    assert "needs exactly one" in boxes["09_no_parameters: ✗ failed"]


@pytest.mark.parametrize("name", ["06_floods", "07_floods_in_pieces"])
def test_a_cell_that_prints_100_mb_is_named_and_its_page_stays_small(lab, entry, name):
    error = entry[name]["error"]
    assert re.match(r"The cell put out 10\d MB; only the first 5 MB are kept\.", error["message"])
    assert error["cell"].startswith("In [3]: ")
    assert (lab.latest / f"{name}.ipynb").stat().st_size < 8e6
    assert "was not kept" in (lab.latest / f"{name}.html").read_text(encoding="utf-8")


def test_an_error_is_shown_even_after_a_flood():
    meter = Meter(limit=10)
    text = {"msg_type": "stream", "content": {"text": "x" * 100}}
    assert meter.admits(text, 0, "In [1]")
    assert text["content"]["text"].startswith("x" * 10 + "\n")
    assert not meter.admits({"msg_type": "stream", "content": {"text": "y"}}, 0, "In [1]")
    assert not meter.admits({"msg_type": "display_data", "content": {"data": {"a": "b"}}}, 0, None)
    assert meter.admits({"msg_type": "error", "content": {}}, 0, "In [1]")
    assert (meter.where, meter.total) == ("In [1]", 101)


def test_the_page_stands_alone(lab, tree):
    for element in tree.iter():
        for name in ("src", "srcset", "data", "poster"):
            assert element.get(name, "data:").startswith("data:")
        assert element.tag not in ("script", "iframe", "object")
    assert [link.get("href") for link in tree.iter("link")] == ["data:,"]
    assert not re.search(r"@import|url\(", page_of(lab))


def test_every_link_leads_somewhere(lab, tree):
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    links = [link.get("href") for link in tree.iter("a")]
    assert len(links) > 20
    for link in links:
        file, _, anchor = link.partition("#")
        assert (lab.latest / file).exists()
        text = (lab.latest / file).read_text(encoding="utf-8") if file else page_of(lab)
        assert not anchor or f'id="{anchor}"' in text


def test_plots_are_small_described_and_lead_into_the_lesson(lab, tree):
    (image,) = tree.iter("img")
    assert image.get("alt") == 'A line that rises, <b>"steeply"</b> & for ever'
    assert len(image.get("src")) < 40_000
    (link,) = (a for a in tree.iter("a") if a.find("img") is not None)
    assert link.get("href").startswith("01_good.html#cell-id=")


def test_the_structure_is_one_that_a_screen_reader_can_walk(tree):
    levels = [int(e.tag[1]) for e in tree.iter() if re.fullmatch("h[1-6]", str(e.tag))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert all(th.get("scope") for th in tree.iter("th"))
    assert all(img.get("alt") for img in tree.iter("img"))
    assert tree.get("lang") == "en"


def test_nothing_that_lessons_say_becomes_markup(lab, tree):
    page = page_of(lab)
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;img src=x&gt; &amp; co" in page
    assert not list(tree.iter("b"))


def test_figures_of_one_unit_share_a_scale_and_shares_are_measured_against_one(entry):
    groups = figures.groups(entry["01_good"]["results"])
    bars = {row.name: row.bar for group in groups for row in group}
    assert bars == {
        "speed, eager": 0.25,
        "speed, jit": 1.0,
        "test accuracy": 0.75,
        "rows": None,
        "verdict": None,
    }
    assert [row.text for row in groups[0]] == ["100 examples/s", "400 examples/s"]


def test_the_environment_is_told_in_words(tree):
    table = next(t for t in tree.iter("table") if t.get("class") == "environment")
    facts = {words(row[0]): words(row[1]) for row in table.iter("tr")}
    assert facts["Devices"] == "2 \u00d7 CPU, simulated: timings say nothing about speed"
    assert facts["NVIDIA driver"] == "none"
    assert facts["Data set"] == "<none>"
    assert {"Started", "Finished", "Python", "JAX"} <= set(facts)


def test_exercises_are_shown_where_there_are_any(lab):
    results = copy.deepcopy(lab.results())
    results["notebooks"][0]["exercises"] = {"1a": "passed", "1b": {"status": "not attempted"}}
    page = words(parsed(report.render(results, lab.latest)).find("body"))
    assert "Exercises solved1 of 2" in page
    assert "1a: passed" in page
    assert "1b: not attempted" in page
    assert "Exercises solved" not in words(parsed(page_of(lab)))


def test_the_report_can_be_made_anew_from_the_folder(lab, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "course_utils.headless.report", lab.latest], capture_output=True
    )
    assert done.returncode == 0
    parsed(page_of(lab))
    assert report.main([str(tmp_path)]) == 2


def test_a_report_that_cannot_be_made_costs_no_lesson(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    (lab.modules / "jinja2.py").write_text("raise ImportError('no templates')")
    status, said = lab.run()
    assert (status, lab.results()["notebooks"][0]["status"]) == (1, "passed")
    assert "index.html: report: ImportError('no templates')" in said


def test_a_stopped_run_says_so_and_goes_on_where_it_stopped(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", REPORTS, "record('pid', __import__('os').getpid())")
    lab.lesson("02_endless", ENDLESS)
    lab.lesson("03_last", REPORTS, "record('rate', RATE)")
    runner = lab.start("--param", "RATE=2", env={"TMPDIR": str(tmp_path)})
    until(lambda: (lab.notebooks / "kernel.pid").exists())
    runner.kill()
    runner.communicate(timeout=10)
    before = lab.results()["notebooks"]
    assert [x["status"] for x in before] == ["passed", "running", "not run"]
    assert "This run is not finished" in words(parsed(page_of(lab)))
    until(lambda: not any(map(alive, pids(lab.notebooks))))
    (lab.notebooks / "go").touch()
    status, said = lab.run("--resume", "1")
    assert (status, said.splitlines()[0]) == (
        0,
        f"Going on with {lab.latest}: 2 of 3 lessons to run.",
    )
    after = lab.results()["notebooks"]
    assert [x["status"] for x in after] == ["passed"] * 3
    assert after[0] == before[0]  # what had passed is not run again
    assert after[1]["interrupted"] == 1
    assert after[2]["results"]["rate"]["value"] == 2.0
    assert lab.results()["parameters"] == {"RATE": 2.0}
    page = words(parsed(page_of(lab)))
    assert "Every lesson passed" in page
    assert "interrupted once before" in page
    assert not list(lab.latest.glob(".*"))


def test_a_terminated_run_reports_what_it_has_and_can_go_on(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_endless", "print('begun')", ENDLESS)
    lab.lesson("02_next", "1")
    runner = lab.start()
    until(lambda: (lab.notebooks / "kernel.pid").exists())
    runner.send_signal(signal.SIGTERM)
    runner.communicate(timeout=20)
    assert runner.returncode == 143
    page = words(parsed(page_of(lab)))
    assert "Stopped by SIGTERM." in page
    assert "\u2013 not run" in page
    (lab.notebooks / "go").touch()
    assert lab.run(env={"RESUME": lab.latest.name})[0] == 0


def test_two_runners_never_work_in_one_folder(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_endless", ENDLESS)
    first = lab.start()
    until(lambda: (lab.notebooks / "kernel.pid").exists())
    status, said = lab.run("--resume", "1")
    assert (status, said) == (2, f"error: Another runner is still at work in {lab.latest}.\n")
    (lab.notebooks / "go").touch()
    first.communicate(timeout=30)
    assert first.returncode == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--resume", "1", "01"], "leave out 01"),
        (["--resume", "1", "--profile", "cpu"], "leave out PROFILE=cpu"),
        (["--resume", "1", "--repeat", "2"], "leave out REPEAT"),
        (["--resume", "1"], "holds no run"),
        (["--resume", "nothing"], "holds no run"),
        (["--repeat", "0"], "from 1 to 100"),
    ],
)
def test_what_cannot_go_on_is_refused(tmp_path, options, says):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    status, said = lab.run(*options)
    assert status == 2
    assert says in said
    assert "Traceback" not in said


def test_a_run_of_other_code_is_not_gone_on_with(tmp_path):
    folder = tmp_path / "runs" / "old"
    folder.mkdir(parents=True)
    environment = {"git_commit": "0123abc", "python": "3.11.7"}
    results = {"parameters": {}, "environment": environment, "notebooks": [not_run("01_good")]}
    (folder / "results.json").write_text(json.dumps(results))
    with pytest.raises(resume.UsageError, match="began with commit 0123abc; this is None"):
        resume.find("old", tmp_path / "runs", tmp_path)


def test_repeats_give_medians_samples_and_a_page_each(tmp_path):
    lab = Lab(tmp_path)
    count = "import pathlib\nn = len(list(pathlib.Path('.').glob('*.seen')))\n"
    count += "pathlib.Path(f'{n}.seen').touch()"
    flaky = "record('speed', [10.0, 20.0, 12.0][n], unit='examples/s')\nrecord('rows', 5)"
    lab.lesson("01_flaky", REPORTS, count, flaky, "checkpoint('not the third', n != 2)")
    status, said = lab.run("--repeat", "3")
    (lesson,) = lab.results()["notebooks"]
    assert (status, lesson["status"]) == (1, "failed")
    assert [a["status"] for a in lesson["repeats"]] == ["passed", "passed", "failed"]
    assert lesson["results"]["speed"] == {
        "value": 12.0,
        "unit": "examples/s",
        "samples": [10.0, 20.0, 12.0],
    }
    times = sorted(a["seconds"] for a in lesson["repeats"])
    assert lesson["seconds"] == times[1]
    assert "[1/1, repeat 3/3] 01_flaky failed" in said
    page = words(parsed(page_of(lab)))
    assert "2 of 3 passed" in page
    assert "10 to 20, spread 83%" in page
    assert "the same each time" in page
    for number in (1, 2, 3):
        assert (lab.latest / f"{file_name('01_flaky', number)}.html").exists()


def test_a_repeated_run_goes_on_with_the_repeats_that_are_left():
    done = not_run("01") | {"status": "passed", "seconds": 1.0}
    entry = not_run("01") | {"repeats": [done, done | {"status": "interrupted"}]}
    entry["status"] = "running"
    resume._mark(entry)
    assert entry["repeats"] == [done]
    assert still_to_run(entry, 3) == 2
    assert still_to_run(done, 1) == 0


def test_a_failed_attempt_stands_for_all():
    good = not_run("01") | {"status": "passed", "seconds": 2.0}
    bad = not_run("01") | {"status": "failed", "seconds": 4.0, "error": {"message": "no"}}
    entry = merged([good, bad])
    assert (entry["status"], entry["seconds"], entry["error"]) == ("failed", 3.0, bad["error"])


def small_disk(place: Path) -> bool:
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    return subprocess.run(mount, capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path):
    place = tmp_path / "disk"
    try:
        mounted = small_disk(place)
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a full disk needs the right to mount one")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_lesson_that_fills_the_disk_still_gets_its_row_in_the_report(tmp_path, disk):
    lab = Lab(tmp_path)
    fill = "with open(PLACE, 'wb') as file:\n    while True: file.write(bytes(100_000))"
    lab.lesson("01_good", "1")
    lab.lesson("02_fills", f"PLACE = {str(disk / 'junk')!r}", fill)
    lab.lesson("03_last", "1")
    lab.runs = disk / "runs"
    status, said = lab.run()
    assert status == 1
    results = strict_json(lab.latest / "results.json")
    assert [x["status"] for x in results["notebooks"]] == ["passed", "failed", "passed"]
    assert "No space left on device" in results["notebooks"][1]["error"]["message"]
    assert "No space left on device" in words(parsed(page_of(lab)))
    assert "Traceback" not in said


def test_a_run_under_a_limit_of_file_size_leaves_no_draft(tmp_path):
    lab = Lab(tmp_path)
    lab.lesson("01_good", "1")
    limit = 1_000_000
    lab.run(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert not list(lab.latest.glob(".*"))
