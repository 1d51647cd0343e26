"""What is suggested has to be true: no cause without evidence, and a way on where none is found."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from equivalence_case import DEVICES
from equivalence_steps import (
    EXAMPLES,
    MOMENTUM,
    SGD,
    compared,
    each,
    fault,
    host_batch,
    host_state,
    make_mesh,
    mapped,
    masked_loss,
    one_device,
    own_gradients,
    pmean,
    psum,
    put,
    right_local,
    trap_local,
)
from equivalence_wrong_batches import keyed
from equivalence_wrong_whole import (
    KEY,
    LONG,
    SHORT,
    clip,
    clipped_first,
    each_own_clip,
    local_means,
    metrics_of,
    whole,
)

from course_utils.equivalence import assert_equal_to_one_device, pad_batch
from course_utils.equivalence._padding import is_pair
from course_utils.equivalence._tolerance import TOLERANCE, tolerance

# Shards without a real example


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("metrics", [True, False], ids=["metrics", "state alone"])
def test_a_shard_of_padding_only_is_never_the_only_one_that_counts(devices, metrics):
    for real, longest in ((EXAMPLES // devices, SHORT), (33, LONG)):
        arguments = whole(devices, clipped_first, real=real, longest=longest)
        said = fault(**arguments, check_metrics=metrics).suggestion
        assert "only shard" not in said
        assert "clip" in said


def test_one_shard_that_counts_is_still_named_beside_shards_of_padding():
    def second(total, count, sums, grads, longest):
        mine = jax.lax.axis_index("data") == 1
        grads = psum(each(lambda g: jnp.where(mine, g / count, 0), grads))
        loss, sums = psum((total, sums))
        return clip(grads, longest)[0], metrics_of(loss / 33, sums, jnp.zeros(()))

    said = fault(**whole(4, second), check_metrics=False).suggestion
    assert "only shard 1 of the batch counts" in said


@pytest.mark.parametrize("devices", [4, 8])
def test_a_mean_of_means_is_named_where_the_reference_divides_nothing_by_nothing(devices):
    def local(params, batch):
        mask = batch["mask"]
        some = {"mask": jnp.where(mask.any(), mask, 1)}
        value, grads = own_gradients(params, batch | some, masked_loss)
        return pmean(each(lambda x: x * mask.any(), (value, grads)))

    batch = host_batch() | {"mask": (np.arange(EXAMPLES) < 33).astype(np.float32)}
    report = fault(**compared(devices, local, SGD, loss=masked_loss, batch=batch))
    assert "mean of means over ragged shards" in report.suggestion


# Random numbers


def test_the_random_numbers_are_suspected_only_where_nothing_speaks_for_another_cause():
    numbered = keyed(
        4,
        lambda key, m: jax.vmap(jax.random.fold_in, (None, 0))(
            key, 1000 * jax.lax.axis_index("data") + jnp.arange(m)
        ),
    )
    said = fault(**numbered).suggestion
    assert "likely the random numbers" in said
    assert "compare once without random numbers" in said


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("metrics", [True, False], ids=["metrics", "state alone"])
def test_a_key_alone_does_not_make_the_random_numbers_likely(devices, metrics):
    arguments = whole(devices, local_means, key=KEY)
    said = fault(**arguments, check_metrics=metrics).suggestion
    assert "likely the random numbers" not in said
    assert ("loss by class'] depends on them, and agrees" in said) == metrics


@pytest.mark.parametrize("devices", DEVICES)
def test_a_metric_that_agrees_clears_the_random_numbers(devices):
    arguments = whole(devices, each_own_clip, real=EXAMPLES, key=KEY)
    said = fault(**arguments).suggestion
    assert "hardly the random numbers" in said
    assert "First compare once without random numbers" in said
    assert "example_keys" not in said


# Precision


@pytest.mark.parametrize(
    ("dtype", "as_wide"),
    [
        ("int32", "float32"),
        ("bool", "float32"),
        ("key<fry>", "float32"),
        ("", "float32"),
        ("complex64", "float32"),
        ("complex128", "float64"),
        ("float8_e4m3fn", "bfloat16"),
    ],
)
def test_whole_numbers_and_keys_loosen_no_tolerance(dtype, as_wide):
    assert tolerance(dtype) == TOLERANCE[as_wide]


def tilted(by):
    """The right gradient, and a part of another direction."""

    def local(params, batch):
        loss, grads = right_local(params, batch)
        size = by * optax.tree.norm(grads)
        return loss, each(
            lambda g, p: g + size * jnp.sin(7 * p + jnp.arange(p.size).reshape(p.shape)),
            grads,
            params,
        )

    return local


@pytest.mark.parametrize(("by", "offered"), [(2e-5, True), (1e-2, False), (0.3, False)])
def test_a_tolerance_is_offered_only_for_what_precision_explains(by, offered):
    report = fault(**compared(4, tilted(by)), check_metrics=False)
    said = report.suggestion
    assert "no known fault fits" in said
    assert ("pass rtol=" in said) == offered
    assert all("exactly 1 times" not in leaf.verdict for leaf in report.leaves)
    assert ("Switch off, on both sides" in said) != offered


# Lengths


@pytest.mark.parametrize("devices", [2, 8])
def test_an_odd_learning_rate_is_told_from_a_gradient_of_another_length(devices):
    arguments = compared(devices, right_local, optax.sgd(0.137, momentum=0.9))
    said = fault(**arguments | {"reference": one_device(MOMENTUM)}).suggestion
    assert "moves 1.37 times as far as the reference's, in its direction" in said
    assert "The gradient is right" in said
    assert "a learning rate, or its schedule" in said

    def longer(params, batch):
        return each(lambda x: 1.37 * x, right_local(params, batch))

    said = fault(**compared(devices, longer)).suggestion
    assert "Only the length is wrong: clipping" in said


def test_a_factor_of_a_state_is_one_of_its_way_and_of_a_metric_one_of_its_value():
    report = fault(**compared(4, lambda p, b: each(lambda x: 4 * x, right_local(p, b)), SGD))
    verdicts = {leaf.path: leaf.verdict for leaf in report.leaves}
    assert verdicts["state[0]['W']"].startswith(
        "moves exactly 4 times as far as the reference's: 4"
    )
    assert verdicts["metrics['loss']"].startswith("is exactly 4 times the reference's: 4 = ")


# Ways out


def unaware(devices=4, **options):
    """A step for pairs of pad_batch, and a reference that knows no padding; two batches."""
    batches = [host_batch(seed, examples) for seed, examples in enumerate((48, 45))]
    mesh = make_mesh(devices)
    inner = mapped(SGD, mesh, lambda p, b: right_local(p, b[0] | {"mask": b[1]}, masked_loss))
    state, padded = put(mesh, host_state(SGD), [pad_batch(batch, 48) for batch in batches])
    arguments = {"step": inner, "state": state, "batch": padded[0], "more_batches": padded[1:]}
    return batches, arguments | {"reference": one_device(SGD)} | options


def test_forgotten_reference_batches_are_named_where_the_reference_gets_a_pair():
    batches, arguments = unaware()
    with pytest.raises(TypeError) as failure:
        assert_equal_to_one_device(**arguments)
    *_, note = failure.value.__notes__
    assert "got the padded batch as a pair (batch, mask)" in note
    assert "reference_batches=[the unpadded batches], one for `batch` and one for each of" in note
    report = fault(**arguments, reference_batches=batches)
    assert "mean of means over ragged shards" in report.suggestion


def test_other_errors_of_the_reference_are_left_as_they_are():
    def broken(state, batch):
        raise KeyError("momentum")

    batches, arguments = unaware(reference=broken)
    for more in ({"reference_batches": batches}, {"batch": host_batch(), "step": one_device(SGD)}):
        with pytest.raises(KeyError) as failure:
            assert_equal_to_one_device(**arguments | {"more_batches": []} | more_of(more))
        assert not any("pair" in note for note in failure.value.__notes__)


def more_of(options):
    """As many reference batches as there are batches."""
    return {k: v[:1] if k == "reference_batches" else v for k, v in options.items()}


@pytest.mark.parametrize(
    ("batch", "pair"),
    [
        (pad_batch(host_batch(), 48), True),
        (pad_batch(host_batch(examples=33), 48), True),
        (pad_batch((np.ones((5, 2), np.float32), np.arange(5)), 8), True),
        ((np.ones((5, 2), np.float32), np.arange(5)), False),
        (host_batch(), False),
        ((np.ones((5, 2), np.float32), np.ones(4, np.float32)), False),
        (np.ones((2, 2)), False),
        ((), False),
    ],
)
def test_a_pair_of_batch_and_mask_is_recognised(batch, pair):
    assert is_pair(batch) == pair


def test_fewer_metrics_than_the_reference_has_get_the_way_out():
    arguments = whole(4)
    step = arguments["step"]

    def fewer(*given):
        state, metrics = step(*given)
        return state, {"loss": metrics["loss"]}

    arguments |= {"step": fewer}
    said = fault(**arguments).suggestion
    assert "metrics['gradient norm']: missing" in said
    assert "or compare the state alone: check_metrics=False." in said
    assert assert_equal_to_one_device(**arguments, check_metrics=False).ok


def test_another_structure_of_the_state_is_no_matter_of_metrics():
    arguments = compared(4, trap_local)

    def fewer(state, batch):
        (params, opt_state), metrics = one_device(MOMENTUM)(state, batch)
        return (params | {"more": jnp.ones(())}, opt_state), metrics

    said = fault(**arguments | {"step": fewer}).suggestion
    assert "state[0]['more']: the reference has no such leaf" in said
    assert "check_metrics" not in said
