"""Two pictures of the results: how near each way comes to the limit, and accuracy over time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.groups import accuracy, step
from benchmarks.tables import number
from benchmarks.tasks.accuracy import FINAL, SECONDS

Results = Mapping[str, Any]
OURS, OTHERS, LIMITS = "#1f5fa8", "#c3cad1", "#e7eaed"
# The recipes, told apart in grey too: solid and dark, dashed, dotted.
LINES = {"fast": (OURS, "-"), "lab": ("#b0541f", "--"), "lab-longer": ("#555555", ":")}


def draw(results: Results, file: Path) -> None:
    """Write the picture, on white so that it can be read in a dark page too."""
    drawn = [(group, draws) for name, draws in _DRAWN if (group := find(results, name))]
    if not drawn:
        return
    figure = Figure(figsize=(6.4 * len(drawn), 4.2), layout="constrained", facecolor="white")
    for axes, (group, draws) in zip(
        figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True
    ):
        draws(axes, group)
        axes.spines[["top", "right"]].set_visible(False)
    draft = file.with_name(f".{file.name}")
    figure.savefig(draft, dpi=130, format="png")
    draft.replace(file)


def in_words(results: Results) -> str:
    """What the picture shows, for those who can't see it."""
    sentences = []
    if group := find(results, step.GROUP.name):
        bars = [f"{row['label']} {number(median)}" for row, median in _bars(group)]
        sentences.append(f"Fraction of the matmul limit: {', '.join(bars)}.")
    if group := find(results, accuracy.GROUP.name):
        ends = [
            f"{row['label']} ends at {_median(row, FINAL)} % after {_median(row, SECONDS)} s"
            for row in group["rows"]
            if FINAL in row["figures"]
        ]
        sentences.append(f"Test accuracy over training time: {', '.join(ends)}.")
    return " ".join(sentences)


def _median(row: Results, quantity: str) -> str:
    return number(row["figures"][quantity]["median"])


def find(results: Results, name: str) -> Results | None:
    """A measured group by its name."""
    return next((group for group in results["groups"] if group["name"] == name), None)


def _bars(group: Results) -> list[tuple[Results, float]]:
    """Rows with a fraction of the limit, the best first."""
    rows = [row for row in group["rows"] if step.FRACTION in row["figures"]]
    found = [(row, row["figures"][step.FRACTION]["median"]) for row in rows]
    return sorted(found, key=lambda bar: -bar[1])


def _draw_fractions(axes: Axes, group: Results) -> None:
    bars = _bars(group)[::-1]
    for place, (row, median) in enumerate(bars):
        figure = row["figures"][step.FRACTION]
        fused, limit = row["name"] == "fused", row["name"].startswith("matmuls")
        axes.barh(place, median, color=OURS if fused else LIMITS if limit else OTHERS)
        axes.plot([figure["min"], figure["max"]], [place, place], color="black", linewidth=1)
        axes.text(
            0.01,
            place,
            number(median),
            va="center",
            fontsize=9,
            color="white" if fused else "black",
        )
    axes.set_yticks(range(len(bars)), [row["label"].replace("`", "") for row, _ in bars])
    axes.set_xlabel("fraction of the matmul limit (line: smallest to largest)")
    axes.set_title("The training step")


def _draw_accuracy(axes: Axes, group: Results) -> None:
    for row in group["rows"]:
        color, style = LINES[row["name"]]
        for number_of_run, curve in enumerate(row["facts"].get("curves", [])):
            label = None if number_of_run else row["label"]
            axes.plot(*zip(*curve, strict=True), style, color=color, linewidth=1.2, label=label)
    for target in accuracy.TARGETS:
        axes.axhline(target, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_xlabel("seconds of training, evaluation left out")
    axes.set_ylabel("test accuracy, %")
    axes.set_ylim(80, 92)
    axes.set_title("Time to accuracy")
    axes.legend(loc="lower right")


_DRAWN = ((step.GROUP.name, _draw_fractions), (accuracy.GROUP.name, _draw_accuracy))
