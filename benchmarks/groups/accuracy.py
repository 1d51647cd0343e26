"""How long training takes to 88, 89 and 90 % test accuracy: lesson 10's recipe and the source lab's."""

from typing import Any

from benchmarks.figures import Rounds, claim, samples
from benchmarks.group import Answers, Group
from benchmarks.tasks.accuracy import FINAL, LAB_STEPS, SECONDS, TARGETS, to_reach
from benchmarks.variant import Variant

TASK = "benchmarks.tasks.accuracy"
LAB = Variant("lab", f"source lab's recipe, its {LAB_STEPS} steps", f"{TASK}:SourceRecipe")


def in_lab_runs(target: int) -> str:
    """Name the quantity: time to a target, over that of the source lab's whole run."""
    return f"to {target} %, in the lab's runs"


def derive(answers: Answers) -> Answers:
    """Add the times to the targets as multiples of the lab's whole run in the same round."""
    if LAB.name in answers:
        whole = answers[LAB.name][SECONDS]
        for quantities in answers.values():
            for target in TARGETS:
                if to_reach(target) in quantities:
                    quantities[in_lab_runs(target)] = quantities[to_reach(target)] / whole
    return answers


def claims(rounds: Rounds) -> list[Any]:
    """How soon the recipe is to be there, in every round."""
    return [
        claim(
            f"{target} % test accuracy, in the time of the source recipe's {LAB_STEPS} steps",
            samples(rounds, "fast", in_lab_runs(target)),
            "<=",
            wanted,
            of=len(rounds),
        )
        for target, wanted in ((90, 3), (88, 0.6))
    ]


GROUP = Group(
    name="accuracy",
    title="Time to accuracy",
    how=(
        "One training a round, each with another key. The clock stops while the test images are looked "
        "at: after every epoch of lesson 10's recipe, every 25 steps of the lab's. A time to an accuracy "
        "is that of the first look that shows it: it says how fast training is, and chooses nothing. "
        "In the lab's runs: as multiples of the time that the lab's 400 steps take."
    ),
    variants=(
        Variant("fast", "lesson 10's recipe", f"{TASK}:FusedRecipe"),
        LAB,
        Variant("lab-longer", "the same for 1,200 steps", f"{TASK}:SourceRecipe", ("1200",)),
    ),
    columns=(SECONDS, FINAL, *map(to_reach, TARGETS), *map(in_lab_runs, TARGETS)),
    rounds=7,
    quick_rounds=1,
    claims=claims,
    derive=derive,
    facts=True,
)
