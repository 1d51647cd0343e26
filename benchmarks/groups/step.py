"""How fast the training step of lesson 01 is: ours, the source lab's, and its peers'."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import equality, problem
from benchmarks.crew import Crew
from benchmarks.figures import Rounds, claim, paired_ratio, samples
from benchmarks.group import Answers, Group, Say
from benchmarks.problem import BATCH_SIZE
from benchmarks.steps.timed import TIME
from benchmarks.variant import Variant

TIMED = "benchmarks.steps.timed:Timed"
RATE, FRACTION = "examples per s", "of the matmul limit"


def way(name: str, label: str, target: str, *arguments: str, needs: str = "") -> Variant:
    """Return the variant that trains as benchmarks.steps.<target> does."""
    return Variant(name, label, TIMED, (f"benchmarks.steps.{target}", *arguments), needs)


REFERENCE = way("reference", "the same in float64", "numpy_loop:Loop", "float64")
LIMITS = (
    way("matmuls-openblas", "the eight matmuls alone, OpenBLAS", "matmuls:OnOpenBLAS"),
    way("matmuls-jax", "the eight matmuls alone, JAX", "matmuls:OnJAX"),
)
WAYS = (
    way("fused", "fused epoch (lesson 10)", "jax_loops:Fused"),
    way("lesson-01", "loop over batches (lesson 01)", "jax_loops:Lesson01"),
    way("source", "source lab's loop", "jax_loops:SourceLoop"),
    way("torch", "PyTorch, fused AdamW", "torch_loops:Eager", needs="torch"),
    way("torch-compile", "PyTorch, torch.compile", "torch_loops:Compiled", needs="torch"),
    way("keras", "Keras `fit` on JAX", "keras_fit:Fit", needs="keras"),
    way(
        "keras-epoch",
        "Keras `fit`, an epoch per execution",
        "keras_fit:Fit",
        "1000000",
        needs="keras",
    ),
    way("nnx", "Flax NNX", "nnx_loop:Loop", needs="flax"),
    way("equinox", "Equinox", "equinox_loop:Loop", needs="equinox"),
    way("numpy", "NumPy by hand", "numpy_loop:Loop"),
)


def compare(crew: Crew, say: Say) -> list[Any]:
    """Let every way take its steps of plain gradient descent, and judge them."""
    return compare_those(WAYS, {}, crew, say)


def compare_those(
    ways: Sequence[Variant], accepted: Mapping[str, float], crew: Crew, say: Say
) -> list[Any]:
    """Compare some of the crew's variants with the same steps in float64 (see `equality`)."""
    timed, crew.variants = crew.variants, [REFERENCE, *ways]
    found = crew.each("after_sgd", say)
    crew.dismiss(REFERENCE.name)
    crew.variants = timed
    if REFERENCE.name not in found:
        raise equality.Different(f"nothing to compare with: {crew.errors[REFERENCE.name]}")
    reference = found.pop(REFERENCE.name)
    rows = equality.differences(problem.initial_layers(problem.SIZES), reference, found)
    for row in rows:
        say(f"  {row['name']:24} differs by {row['difference']:.1e} at most ({row['leaf']})")
    equality.judge(rows, accepted)
    return rows


def derive(answers: Answers) -> Answers:
    """Add examples per second, and the fraction of the limit that was measured in this round.

    The limit is the faster of both; a round that lacks one of them has no limit.
    """
    limits = [answers[limit.name][TIME] for limit in LIMITS if limit.name in answers]
    for quantities in answers.values():
        quantities[RATE] = 1000 * BATCH_SIZE / quantities[TIME]
        if len(limits) == len(LIMITS):
            quantities[FRACTION] = min(limits) / quantities[TIME]
    return answers


def claims(rounds: Rounds) -> list[Any]:
    """What the fused epoch is to reach."""
    found = [
        claim(
            f"the fused epoch is so many times as fast as {label}",
            paired_ratio(rounds, name, "fused", TIME),
            ">=",
            wanted,
        )
        for name, label, wanted in (
            ("source", "the source lab's loop", 1.3),
            ("torch", "PyTorch with its fused AdamW", 1.3),
            ("keras", "Keras' `fit`", 1.15),
            ("keras-epoch", "Keras' `fit` with an epoch per execution", 1.15),
        )
    ]
    fraction = samples(rounds, "fused", FRACTION)
    return [*found, claim("the fused epoch runs at this part of the limit", fraction, ">=", 0.80)]


GROUP = Group(
    name="step",
    title="The training step: 784-256-128-10, GELU, batch 512, AdamW",
    how=(
        "A round is the median of three epochs of 117 steps, after one that nobody times (other "
        "processes had the caches). After four rounds new processes take over: how often one gives "
        "memory back to the system and takes it again differs between processes of one program, and "
        "costs those who make arrays in every step. Each keeps the loss and accuracy of every step, "
        "Keras those of the epoch, the loops of the source lab and of lesson 01 the gradient's norm too, "
        "as there. The loops go over batches that are ready; the fused epoch draws its order, converts "
        "its bytes and donates its state; Keras shuffles arrays of the host. The limit is the faster of "
        "both rows of matmuls in the same round; JAX's are one program, as the fused epoch is. Every "
        "library has the threads that it takes by itself."
    ),
    variants=(*LIMITS, *WAYS),
    columns=(TIME, RATE, FRACTION),
    rounds=20,
    quick_rounds=2,
    lifetime=4,
    claims=claims,
    derive=derive,
    check=compare,
)
