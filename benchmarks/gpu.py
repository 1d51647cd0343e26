"""The JAX figures on one GPU: python benchmarks/gpu.py [--write].

Needs Python with JAX and Optax and nothing else, no network and no installation: what it takes of the
course lies beside it. The data set comes from FASHION_MNIST_DIR or the system's package; without
either from the sample in course_utils, which the table then says. On a CPU it runs too, to be
tested. Prints a Markdown table; --write also puts it where README.md takes it from.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
import optax

from benchmarks import equality, gpu_steps, lesson_10, machine, problem, tables
from benchmarks.figures import figure, paired_ratio, per_variant
from benchmarks.steps.timed import TIME
from benchmarks.tasks import accuracy, compiling
from benchmarks.variant import ROOT
from course_utils import fashion_mnist, timing
from course_utils.atomic import write_atomically


def main() -> None:
    options = parse()
    # Before JAX starts its backend: the processes that compile share the GPU with this one.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # No network and no cache: they would take packages that aren't there.
    os.environ.setdefault("FASHION_MNIST_SOURCES", "directory,package,sample")
    if options.compile_in:
        print(json.dumps(compile_once(options.compile_in)))
        return
    device = jax.devices()[0]
    if options.write and device.platform != "gpu":
        sys.exit(f"--write keeps figures of a GPU for README.md; JAX found {device.device_kind}.")
    data = fashion_mnist.load()
    images, labels = (a[: options.examples] for a in (data.train_images, data.train_labels))
    lines = [place(device, data.source), ""]
    lines += products(options.matmul)
    lines += steps(problem.make(images, labels, problem.BATCH_SIZE, problem.SIZES), options.rounds)
    lines += compiles(options.rounds)
    lines += times_to_accuracy(options, data.complete)
    text = "\n".join(lines).rstrip() + "\n"
    print(text)
    if options.write:
        write_atomically(ROOT / "benchmarks/results-gpu.md", text)


def place(device: jax.Device, source: str) -> str:
    """One line: on what, with what, and when."""
    now = machine.describe()
    versions = f"JAX {jax.__version__}, Optax {optax.__version__}"
    at = f"{now['date']} at commit {now['commit']}"
    return f"**{device.device_kind}**, {versions}, data: {source}, on {at}."


def products(size: int) -> list[str]:
    """How fast a large matrix product is in each kind of number."""
    _say("matrix products")
    rows = []
    for label, dtype, precision in gpu_steps.KINDS:
        with jax.default_matmul_precision(precision):
            rate = timing.matmul_rate(dtype, size)
        rows.append(f"| {label} | {tables.number(rate / 1e12)} |")
    return [f"| product of {size:,} x {size:,} | TFLOP/s |", "| --- | ---: |", *rows, ""]


def steps(task: problem.Problem, rounds: int) -> list[str]:
    """The step, in loops and in kinds of numbers, in turns; first proved equal in float32."""
    _say("the step")
    compared = gpu_steps.differences(task)
    equality.judge([row for row in compared if row["name"].endswith(gpu_steps.EXACT)])
    found = gpu_steps.measure(task, rounds)
    figures = per_variant(found)
    head = [
        f"| the step of 512 examples, {rounds} rounds | ms | examples/s | times the source loop | difference |"
    ]
    lines = [*head, "| --- | ---: | ---: | ---: | ---: |"]
    for row in compared:
        name = row["name"]
        each = figures[name][TIME]
        ratio = paired_ratio(found, gpu_steps.BASE, name, TIME)
        rate = tables.number(1000 * problem.BATCH_SIZE / each["median"])
        lines.append(
            f"| {name} | {tables.spread(each)} | {rate} | {tables.spread(ratio)} "
            f"| {row['difference']:.0e} |"
        )
    return [*lines, "", gpu_steps.NOTE, ""]


def compiles(rounds: int) -> list[str]:
    """Compile in new processes, with an empty folder and with one that an earlier one filled."""
    with tempfile.TemporaryDirectory() as folder:
        _say("compiling")
        _in_new_process(f"{folder}/filled")
        pairs = [
            (_in_new_process(f"{folder}/{number}"), _in_new_process(f"{folder}/filled"))
            for number in range(min(rounds, 5))
        ]
    lines = ["| compiling the step | ms to compile |", "| --- | ---: |"]
    for label, times in zip(("cold", "warm"), zip(*pairs, strict=True), strict=True):
        lines.append(
            f"| {label} | {tables.spread(figure([t[compiling.COMPILE] for t in times]))} |"
        )
    return [*lines, ""]


def times_to_accuracy(options: argparse.Namespace, complete: bool) -> list[str]:
    """Train to 88, 89 and 90 % with the source lab's recipe and with lesson 10's."""
    runs = {"source lab's recipe": accuracy.SourceRecipe(str(options.lab_steps))}
    runs["lesson 10's recipe"] = accuracy.FusedRecipe(str(options.epochs))
    for run in runs.values():
        run.prepare()
    found: list[dict[str, Any]] = []
    for number in range(min(options.rounds, 5)):
        _say(f"time to accuracy {number + 1}")
        found.append({name: run.round() for name, run in runs.items()})
    columns = [accuracy.SECONDS, accuracy.FINAL, *map(accuracy.to_reach, accuracy.TARGETS)]
    lines = ["| recipe | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name, each in per_variant(found).items():
        cells = [tables.spread(each[c]) if c in each else "not reached" for c in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    where = (
        [] if complete else ["This is the bundled sample: accuracies of the whole are higher.", ""]
    )
    return [*lines, "", *where]


def compile_once(folder: str) -> dict[str, float]:
    """What a new process does: compile the step, with this folder as the cache."""
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return compiling.first_step()


def _in_new_process(folder: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--compile-in", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"The process that compiles ended so:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options, each refused at once if it can't be measured with."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the table for README.md")
    parser.add_argument("--compile-in", help=argparse.SUPPRESS)
    sizes = {
        "rounds": (11, 1, "of each comparison (compiling and training: 5 at most)"),
        "matmul": (8192, 1, "rows of the large product"),
        "examples": (60_000, problem.BATCH_SIZE, "training images at most"),
        "lab-steps": (accuracy.LAB_STEPS, accuracy.LAB_EVERY, "of the source lab's recipe"),
        "epochs": (lesson_10.constants()["EPOCHS"], 1, "of lesson 10's recipe"),
    }
    for name, (usual, least, text) in sizes.items():
        said = f"{text}; {least:,} or more, usually {usual:,}"
        parser.add_argument(f"--{name}", type=int, default=usual, help=said)
    options = parser.parse_args(arguments)
    given = {name: vars(options)[name.replace("-", "_")] for name in sizes}
    for name, (usual, least, _) in sizes.items():
        if given[name] < least:
            parser.error(f"--{name} is {given[name]}: {least} is the least")
        if options.write and given[name] < usual:
            parser.error(f"--write keeps figures of the usual size: --{name} {usual} or more")
    return options


def _say(line: str) -> None:
    print(f"{line} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
