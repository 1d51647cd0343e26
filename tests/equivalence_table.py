"""The honest table of the tool: `python tests/equivalence_table.py` prints it.

Every wrong parallel step should be caught and its cause named, every right one pass, on 2, 3, 4
and 8 devices.
"""

import argparse
import functools
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

from equivalence_case import DEVICES, Case, Outcome, outcome
from equivalence_right_styles import STYLES
from equivalence_wrong_batches import BATCHES
from equivalence_wrong_metrics import METRICS
from equivalence_wrong_optimizers import OPTIMIZERS
from equivalence_wrong_reductions import REDUCTIONS
from equivalence_wrong_whole import WHOLE

WRONG = [*REDUCTIONS, *BATCHES, *OPTIMIZERS, *METRICS, *WHOLE]
RIGHT = STYLES

compare = functools.cache(outcome)


def mark(case: Case, found: Outcome) -> str:
    """One cell of the table."""
    if not case.wrong:
        return "REFUSED" if found.caught else "passes"
    if not found.caught:
        return "ESCAPES"
    return "named" if found.named else "caught"


def row(number: int, case: Case, devices: tuple[int, ...]) -> str:
    """A line of the table, with what the report says of a wrong step on the most devices."""
    marks = "".join(f"{mark(case, compare(case, n)):<11}" for n in devices)
    said = compare(case, devices[-1]).said if case.wrong else ""
    return f"{number:>2}  {case.name:<68} {marks} {said}".rstrip()


def main() -> None:
    """Print both halves of the table, line by line as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=DEVICES, metavar="N")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    chosen = parser.parse_args()
    for title, found in (("wrong", WRONG), ("right", RIGHT)):
        head = "".join(f"{f'{n} devices':<11}" for n in chosen.devices)
        print(f"\n    {f'{len(found)} {title} steps':<68} {head}")
        for number, case in enumerate(found, 1):
            if chosen.only in case.name:
                print(row(number, case, tuple(chosen.devices)), flush=True)
    kept = [
        compare(case, n).named for case in WRONG for n in chosen.devices if chosen.only in case.name
    ]
    print(f"\ncause named in {sum(kept)} of {len(kept)} comparisons of wrong steps")


if __name__ == "__main__":
    main()
