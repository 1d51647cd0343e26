"""The verb: run both sides step by step, compare everything, stop at the first difference."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from course_utils.equivalence._options import Options
from course_utils.equivalence._report import Report
from course_utils.equivalence._run import Step
from course_utils.equivalence._session import Session


def assert_equal_to_one_device(
    step: Step,
    state: Any,
    batch: Any,
    *,
    reference: Step | None = None,
    steps: int = 3,
    more_batches: Sequence[Any] = (),
    reference_batches: Sequence[Any] | None = None,
    key: jax.Array | None = None,
    rtol: float | None = None,
    check_metrics: bool = True,
    stacked: bool = False,
    micro_batches: bool = False,
    device: jax.Device | None = None,
) -> Report:
    """Run `step` where its arrays lie, and the same on one device; raise unless they agree.

    After every step it compares each leaf of the state (parameters, optimizer state, counters,
    keys) and of the metrics, and whether replicas are equal bit for bit. An error counts as a
    fraction of the way a leaf has moved, not of its value: one small step hardly changes a
    parameter, however wrong it is. Losses alone prove nothing: pass the whole optimizer state
    along, since Adam's parameters don't show a gradient that is N times too large while its
    moments do. A step that clips or normalises its gradients can hide a factor from everything
    it returns; return the gradients' norm in the metrics, or compare gradients with `sgd_step`.

    Your arrays stay yours: both sides get copies, so a step may donate what it takes.

    Args:
        step: takes (state, batch), or (state, batch, key) if `key` is given, and returns
            (state, metrics); any pytrees.
        state: the parallel step's first state, on its devices. Its values, gathered, are the
            reference's first state too.
        batch: one global batch as the parallel step takes it; every leaf leads with the examples.
        reference: the step to compare with; `step` itself by default, which a step bound to its
            mesh (shard_map, sharding constraints) can't be.
        steps: how many to run, each starting from what the last one returned.
        more_batches: further batches; step i takes the i-th of them all, over and over.
        reference_batches: what `batch` and `more_batches` should hold, as host arrays, if that is
            in question too: whole batches, in the same order of batches, and what the reference
            takes. Padding that a mask in `batch` leaves out needn't be there, nor the mask.
        key: one random key, for steps that take one: step i gets `jax.random.fold_in(key, i)`.
        rtol: tolerated error, a fraction; by default that of the narrowest float that the reference
            computes in: 1e-5 for float32 (1e-4 for metrics after the first step; 1e-3 for
            parameters that Adam moves, since it blows up rounding), 2e-3 for TF32 (GPUs, by
            default), 2e-2 for float16, 5e-2 for bfloat16, 1e-11 for float64. What exceeds it, but
            not what rounding does to the reference itself, is no difference either. Integers,
            bools and keys are compared exactly, except counts of decisions among the metrics.
        check_metrics: False leaves the metrics out.
        stacked: True for steps as pmap takes them: every leaf of state and metrics leads with an
            axis of devices, each entry one device's copy, and batches are (devices, examples per
            device, ...). The reference then gets one copy, and batches without that axis.
        micro_batches: True where the parallel step accumulates gradients over batches of shape
            (micro-batches, examples, ...); (devices, micro-batches, examples, ...) if stacked. The
            reference gets them merged, one row an example.
        device: where the reference runs; by default the first of the parallel step's.

    Returns:
        A report; `report.rows`, under `HEADERS`, suit a table, `str(report)` a terminal.

    Raises:
        NotEqualToOneDevice: an AssertionError. Its `report` names the leaves, the factors and
            the likely cause. It is about the first step in which anything differs.
        NothingProved: one of those: the reference changes nothing that could be compared.
        ValueError: the batch doesn't divide by the mesh; `step` doesn't run on one device; the
            reference uses several; arrays were donated before, or are another process's.
        TypeError: a step doesn't return a pair, a leaf is no array, or `key` is no key.

    Example:
        report = assert_equal_to_one_device(parallel_step, state, batch, reference=train_step)
        show_table(HEADERS, report.rows)
    """
    batches = [batch, *more_batches]
    options = Options(rtol, check_metrics, stacked, micro_batches, key)
    _validate(steps, state, batches, reference_batches)
    options.validate()
    session = Session(step, options)
    session.start(reference, state, batches, reference_batches, device)
    for _ in range(steps):
        session.advance()
    return session.finish()


def sgd_step(gradients: Callable[[Any, Any], Any], learning_rate: float = 0.1) -> Step:
    """Make the step `params -> params - learning_rate * gradients(params, batch)`.

    Its state is the params, its metrics are the gradients, so that both are compared.

    Args:
        gradients: (params, batch) -> gradients, of the params' structure and shapes.
        learning_rate: a fixed one.
    """

    def step(params: Any, batch: Any) -> tuple[Any, Any]:
        grads = gradients(params, batch)
        return jax.tree.map(lambda p, g: p - learning_rate * g, params, grads), grads

    return step


def _validate(
    steps: int, state: Any, batches: Sequence[Any], reference_batches: Sequence[Any] | None
) -> None:
    if steps < 1:
        raise ValueError(f"assert_equal_to_one_device needs steps >= 1, not {steps}.")
    if not jax.tree.leaves(state):
        raise ValueError("The state has no leaves, so there is nothing that a step could train.")
    if reference_batches is not None and len(reference_batches) != len(batches):
        raise ValueError(
            f"reference_batches has {len(reference_batches)} batches, the parallel side "
            f"{len(batches)}: give one for `batch` and one for each of `more_batches`."
        )
