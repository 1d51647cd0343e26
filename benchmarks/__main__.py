"""Measure all groups and write down what was found: python -m benchmarks (see `make bench`)."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, plot, readme, tables
from benchmarks.equality import Different
from benchmarks.group import failures, measure
from benchmarks.groups import (
    accuracy,
    all_reduces,
    compiling,
    imports,
    loading,
    step,
    weight_gradient,
)
from benchmarks.variant import ROOT
from course_utils import fashion_mnist
from course_utils.atomic import write_atomically

GROUPS = {
    module.GROUP.name: module.GROUP
    for module in (step, accuracy, loading, compiling, all_reduces, imports, weight_gradient)
}
HERE = ROOT / "benchmarks"
# Figures of a few rounds, or of some groups, must not pass for those that the README quotes.
QUICK = HERE / "quick"
BUSY = 0.5  # processes that want a core, beside these


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 where ways differ, or where one crashed or hung.

    A claim that doesn't hold is a finding, not a failure.
    """
    options = _parse(arguments)
    whole = not (options.quick or options.groups)
    hurried = [name for name, group in GROUPS.items() if group.in_a_hurry or not options.quick]
    groups = [GROUPS[name] for name in options.groups or hurried]
    started = time.monotonic()
    fashion_mnist.load(allow_sample=False)  # says what to do where the data set isn't whole
    results = {"quick": options.quick, **machine.describe()}
    if machine.load() > BUSY:
        _say(
            f"This machine is busy (load {machine.load():.1f}): wait, or don't believe the figures."
        )
    results["groups"] = []
    failed = []
    try:
        for group in groups:
            try:
                results["groups"].append(measure(group, options.quick, _say))
            except Different as error:
                failed.append(f"{group.name}: {error}")
    except KeyboardInterrupt:
        print("Stopped; nothing was written.", file=sys.stderr)
        return 130
    failed += [line for group in results["groups"] for line in failures(group)]
    # Nor may those of a run in which something failed.
    folder = HERE if whole and not failed else QUICK
    save(results, folder)
    if folder is HERE:
        readme.write()
    print("\n".join(["", *tables.claims_table(results["groups"]), *failed]))
    minutes = (time.monotonic() - started) / 60
    print(
        f"\n{minutes:.1f} minutes; written to {folder}"
        + (" and README.md" if folder is HERE else "")
    )
    return 1 if failed else 0


def save(results: tables.Results, folder: Path) -> None:
    """Write results.json, results.md and results.png into `folder`."""
    folder.mkdir(exist_ok=True)
    plot.draw(results, folder / "results.png")
    write_atomically(folder / "results.md", tables.report(results))
    whole = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    write_atomically(folder / "results.json", whole)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, written to quick/")
    parser.add_argument("--groups", nargs="*", default=[], metavar="GROUP", help=", ".join(GROUPS))
    options = parser.parse_args(arguments)
    if unknown := set(options.groups) - set(GROUPS):
        parser.error(
            f"no group is called {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}"
        )
    options.groups = list(dict.fromkeys(options.groups))
    return options


def _say(line: str) -> None:
    print(line, flush=True)


def end_in_order() -> None:
    """Take SIGTERM, and SIGINT where a shell's background job ignores it, as Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
