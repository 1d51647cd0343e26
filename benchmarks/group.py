"""A group of variants that are measured against each other, and how that goes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.crew import Crew
from benchmarks.figures import Rounds, per_variant
from benchmarks.variant import Variant
from benchmarks.worker import NOT_INSTALLED

Say = Callable[[str], None]
Answers = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Group:
    """What to measure.

    Attributes:
        name: short, as on the command line.
        title, how: for people: what it is, and how it is measured.
        variants: its rows.
        columns: the quantities that a table of it shows, in this order.
        rounds, quick_rounds: how many, in full and when in a hurry.
        claims: what is to hold, from all rounds (see `figures.claim`).
        derive: adds to a round's answers what follows from several variants.
        check: may raise before anything is timed; returns rows that say what it compared.
        prepared: variants have a `prepare` that nobody times.
        lifetime: the rounds of a process, after which a new one takes over; 0: all rounds.
        fresh: every call of every variant gets a new process.
        in_a_hurry: measured in a quick run too, if nobody names the groups.
        facts: variants have `facts` to tell after the last round, kept as they are.
        patience: seconds that one call may take.
    """

    name: str
    title: str
    how: str
    variants: Sequence[Variant]
    columns: Sequence[str]
    rounds: int
    quick_rounds: int
    claims: Callable[[Rounds], list[Any]]
    derive: Callable[[Answers], Answers] = lambda answers: answers
    check: Callable[[Crew, Say], list[Any]] = lambda crew, say: []
    prepared: bool = True
    lifetime: int = 0
    fresh: bool = False
    facts: bool = False
    in_a_hurry: bool = True
    patience: float = 180


def measure(group: Group, quick: bool, say: Say) -> dict[str, Any]:
    """Check, prepare and time the variants of a group, in turns.

    Returns:
        What results.json keeps of it.
    """
    count = group.quick_rounds if quick else group.rounds
    say(f"{group.name}: {group.title}")
    rounds: list[Answers] = []
    with Crew(group.variants, fresh=group.fresh, patience=group.patience) as crew:
        compared = group.check(crew, say)
        begins = range(0, count, group.lifetime or count)
        for number in range(count):
            if number in begins[1:]:
                crew.dismiss_all()
            if group.prepared and number in begins:
                crew.each("prepare", say)
            say(f"{group.name}: round {number + 1} of {count}")
            rounds.append(group.derive(crew.each("round", say)))
        facts = crew.each("facts", say) if group.facts else {}
    # Figures of rounds before one failed would look like those of a variant that is well.
    well = [{n: q for n, q in answers.items() if n not in crew.errors} for answers in rounds]
    figures = per_variant(well)
    rows = [_row(variant, figures, facts, crew.errors) for variant in group.variants]
    return {
        "name": group.name,
        "title": group.title,
        "how": group.how,
        "columns": list(group.columns),
        "compared": compared,
        "rows": rows,
        "claims": group.claims(well),
    }


def failures(found: Mapping[str, Any]) -> list[str]:
    """The variants of a measured group that crashed or hung, in words."""
    return [
        f"{found['name']}: {row['label']}: {row['error']}"
        for row in found["rows"]
        if row["error"] and row["error"] != NOT_INSTALLED
    ]


def _row(
    variant: Variant,
    figures: Mapping[str, Any],
    facts: Mapping[str, Any],
    errors: Mapping[str, str],
) -> dict[str, Any]:
    error = errors.get(variant.name)
    return {
        "name": variant.name,
        "label": variant.label,
        "error": error,
        "figures": figures.get(variant.name, {}),
        "facts": {} if error else facts.get(variant.name, {}),
    }
