"""Can the fused epoch pass what XLA makes of a weight's gradient? Other ways to write it."""

from typing import Any

from benchmarks.crew import Crew
from benchmarks.figures import Rounds, claim, samples
from benchmarks.group import Group, Say
from benchmarks.groups import step
from benchmarks.steps.timed import TIME
from benchmarks.variant import Variant


def other(name: str, label: str) -> Variant:
    """Return the variant of a way in benchmarks.steps.weight_gradient."""
    return step.way(name, label, "weight_gradient:Way", name)


FUSED = step.way("fused", "as JAX differentiates it", "jax_loops:Fused")
EQUAL = (
    other("swapped", "(gᵀ x)ᵀ"),
    other("activations-transposed", "xᵀ made first, then xᵀ g"),
    other("gradients-transposed", "gᵀ made first, then (gᵀ x)ᵀ"),
    other("later-layers", "xᵀ made first, not in the first layer"),
    other("halves", "two halves of the batch, added"),
    other("feature-major", "activations as (features, batch)"),
    other("weights-transposed", "later layers' xᵀ and Wᵀ made first"),
    other("together", "the same, GELU that keeps its slope, bytes gathered first"),
)
ROUNDED = other("bfloat16", "x and g rounded to bfloat16 (other numbers)")
BARE = other("bare", "bound: ReLU and SGD, almost only matmuls (other work)")


def compare(crew: Crew, say: Say) -> list[Any]:
    """All but the bound; a gradient of rounded numbers is off by half a per cent or so."""
    return step.compare_those((FUSED, *EQUAL, ROUNDED), {ROUNDED.name: 0.05}, crew, say)


def claims(rounds: Rounds) -> list[Any]:
    """How far the best that computes the same comes."""
    found = {v.name: samples(rounds, v.name, step.FRACTION) for v in (FUSED, *EQUAL)}
    there = [figure for figure in found.values() if figure]
    best = max(there, key=lambda figure: figure["median"], default=None)
    return [
        claim("the best way to write the step runs at this part of the limit", best, ">=", 0.87)
    ]


GROUP = Group(
    name="weight-gradient",
    title="Other ways to write the weights' gradient",
    how=(
        "The fused epoch with x, a layer's input, and g, the gradient of its output, multiplied in "
        "other ways; all but two are proved to compute the same. Rounds and processes as with the step. "
        "Of ways that lie within each other's spread, none is the better."
    ),
    variants=(*step.LIMITS, FUSED, *EQUAL, ROUNDED, BARE),
    columns=(TIME, step.FRACTION),
    rounds=12,
    quick_rounds=3,
    lifetime=4,
    claims=claims,
    derive=step.derive,
    check=compare,
    in_a_hurry=False,
)
