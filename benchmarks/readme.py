"""Keeps the README's section on performance equal to what was measured: python -m benchmarks.readme."""

import json

from benchmarks import plot, tables
from benchmarks.variant import ROOT
from course_utils.atomic import write_atomically

README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks/results.json"
GPU_TABLE = ROOT / "benchmarks/results-gpu.md"
START = "<!-- benchmarks: from benchmarks/results.json, by make bench -->"
END = "<!-- benchmarks: end -->"
WORDS = (
    "Figures are medians (smallest\u2013largest) of rounds, in which the ways take turns; ratios are made "
    "round by round. *The source lab* is the workshop's lab that lesson 01 mirrors, its loop written "
    "anew. *The limit* of a step is the time that its eight matrix products take alone. "
    "[results.md](benchmarks/results.md) also says how near the ways come to each other after the same "
    "ten steps of plain gradient descent."
)


def section(results: tables.Results | None, gpu_table: str | None) -> str:
    """Return what stands between the two marks."""
    on_gpu = gpu_table.strip() if gpu_table else "Figures on a GPU are still to be measured."
    parts = [_measured(results) if results else "Still to be measured.", on_gpu]
    return "\n\n".join([START, *parts, END])


def renewed(readme: str, fresh: str) -> str:
    """Return the README's text with a fresh section.

    Raises:
        ValueError: the marks aren't there, each once and in order.
    """
    if (
        readme.count(START) != 1
        or readme.count(END) != 1
        or readme.index(START) > readme.index(END)
    ):
        raise ValueError(f"README.md needs these two lines, once and in this order: {START} {END}")
    before, _, rest = readme.partition(START)
    return before + fresh + rest.partition(END)[2]


def current() -> str:
    """Return the section that the files beside this one ask for."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else None
    return section(results, GPU_TABLE.read_text() if GPU_TABLE.exists() else None)


def write() -> None:
    """Bring README.md up to date."""
    write_atomically(README, renewed(README.read_text(), current()))


def _measured(results: tables.Results) -> str:
    lines = [tables.place(results), "", WORDS, ""]
    lines += [*tables.claims_table(results["groups"]), ""]
    if seen := plot.in_words(results):
        lines += [f"![{seen}](benchmarks/results.png)", ""]
    for group in results["groups"]:
        lines += [
            f"### {group['title']}",
            "",
            tables.how(group),
            "",
            *tables.group_table(group),
            "",
        ]
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    write()
