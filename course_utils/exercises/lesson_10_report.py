"""Exercise 10.4: choose by the time to a validation accuracy, report what had no part in it."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from course_utils.exercises.definition import defined
from course_utils.exercises.forms import function

WANTED = 0.9
LATER = "only the other keys"
# Seconds until a recipe reaches WANTED with three keys of the choice and three others; None: never.
PLAYERS = {
    "steady": ([10, 11, 12], [13, 12, 14]),
    "lucky once": ([4, 25, 26], [27, 25, 26]),
    LATER: ([20, 21, 22], [3, 2, 3]),
    "sometimes never": ([5, 6, None], [7, 8, None]),
    "star of the test": ([30, 31, 32], [33, 31, 32]),
    "highest in the end": ([40, 41, 42], [43, 41, 42]),
}
CHOSEN_BY = {
    "lucky once": "A recipe was chosen for its luckiest key. The same key may be bad luck tomorrow: what "
    "counts is the mean.",
    LATER: "The choice looked at keys that were to have no part in it.",
    "sometimes never": "A recipe was chosen that doesn't get there with one of the keys. A run that "
    "never arrives can't be left out of a mean.",
    "star of the test": "The recipe was chosen by its test accuracy. That one has nothing to choose.",
    "highest in the end": "The recipe was chosen by the validation accuracy at its end. How long it took "
    "was the question.",
}


@defined(
    "10.4",
    "Repair a report",
    kind="find the fault",
    trains=(
        "split off validation data",
        "choose a recipe by validation alone",
        "compare two recipes by the time",
    ),
    form=function("runs", "choice_keys", "wanted"),
    hints=(
        "Go through it line by line and ask of each: which keys does it see? And which accuracy, that of "
        "the validation data or of the test data?",
        "One list of seconds for each recipe, from the runs of the choice alone, with `np.inf` for a run "
        "that never gets there: the mean of that list needs no special case. Then a second list, of "
        "other runs. A spread that is estimated from a few values divides by one less.",
    ),
    right="Nothing in this report was looked at before, so it is allowed to be taken at its word. Each "
    "of the faults makes figures better, and that is why they live so long.",
)
def report(report: Callable) -> Iterator[tuple[Any, str]]:
    """Give it runs of recipes each of which wins by one mistake, under two sets of names."""
    for names, keys in (("ABCDEF", [1, 2, 3]), ("ecafdb", [12, 19, 15])):
        runs, names_of = _world(names, keys)
        returned = report(runs, list(keys), WANTED)
        yield returned is None, "Your function returns nothing: return the dict."
        missing = {"recipe", "mean", "spread"} - set(returned)
        yield missing, f"What you return lacks {', '.join(map(repr, sorted(missing)))}."
        player = names_of.get(returned["recipe"])
        yield player is None, f"{returned['recipe']!r} is none of the recipes in `runs`."
        yield player != "steady", CHOSEN_BY.get(player, "")
        mine = [run for run in runs if run["recipe"] == returned["recipe"]]
        unused = [run["test"] for run in mine if run["key"] not in keys]
        yield from _of_mean(float(returned["mean"]), mine, unused, keys)
        yield from _of_spread(float(returned["spread"]), mine, unused)


def _of_mean(
    given: float, mine: list[dict], unused: list[float], keys: list[int]
) -> Iterator[tuple[Any, str]]:
    """Tell a wrong mean by what was averaged."""
    ends = [run["curve"][-1][1] for run in mine if run["key"] not in keys]
    yield (
        _same(given, np.mean([run["test"] for run in mine])),
        "The mean is over all keys, those of the choice among them.",
    )
    yield (
        _same(given, np.mean([run["test"] for run in mine if run["key"] in keys])),
        "The mean is over the keys of the choice: those are the ones that were lucky enough to win it.",
    )
    yield _same(given, max(unused)), "That is the best of several, not their mean."
    yield (
        _same(given, np.mean(ends)),
        "That is a validation accuracy. What is reported, the test says.",
    )
    yield not _same(given, np.mean(unused)), "The mean isn't that of the test accuracies to report."


def _of_spread(given: float, mine: list[dict], unused: list[float]) -> Iterator[tuple[Any, str]]:
    """Tell a wrong spread by how it was computed."""
    yield (
        _same(given, statistics.pstdev(unused)),
        "The spread is too small: a mean that comes from the same few values is always close to them.",
    )
    yield (
        _same(given, max(unused) - min(unused)),
        "From the lowest to the highest is a spread, too, but one that grows with the number of keys. "
        "Report the standard deviation.",
    )
    yield (
        _same(given, statistics.stdev(run["test"] for run in mine)),
        "The spread is over all keys, those of the choice among them.",
    )
    yield not _same(given, statistics.stdev(unused)), "The spread isn't that of the keys reported."


def _same(a: float, b: float) -> bool:
    return abs(a - b) < 1e-6


def _world(names: str, keys: list[int]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Runs of six recipes, and which player each name is; the order of the runs tells nothing."""
    random, runs = np.random.default_rng(keys), []
    others = [100 + key for key in keys]
    for name, (player, (choice, later)) in zip(names, PLAYERS.items(), strict=True):
        for key, seconds in zip([*keys, *others], [*choice, *later], strict=True):
            end = 0.93 if player == "highest in the end" else 0.91
            test = 0.97 if player == "star of the test" else 0.9
            runs.append(
                {
                    "recipe": name,
                    "key": key,
                    "curve": _curve(seconds, end + 0.005 * random.random()),
                    "test": test + 0.02 * random.random(),
                }
            )
    random.shuffle(runs)
    return runs, dict(zip(names, PLAYERS, strict=True))


def _curve(seconds: float | None, end: float) -> list[tuple[float, float]]:
    """Points (seconds, validation accuracy) that reach WANTED then, dip, and end above it."""
    if seconds is None:
        return [(1.0, 0.7), (2.0, 0.8), (50.0, 0.89)]
    before, dip = [(seconds / 2, 0.8)], (seconds + 1, WANTED - 0.005)
    return [*before, (float(seconds), WANTED + 0.001), dip, (60.0, end)]
