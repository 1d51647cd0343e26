"""A parallel step that does something else fails, and the report names the fault."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from equivalence_steps import (
    ADAMW,
    EXAMPLES,
    SGD,
    apply,
    compared,
    example_losses,
    fault,
    host_batch,
    host_params,
    host_state,
    make_mesh,
    masked_loss,
    mean_loss,
    one_device,
    placed,
    pmean,
    psum,
    put,
    right_local,
    trap_local,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import (
    assert_equal_to_one_device,
    sgd_step,
)


def leaf(report, path):
    return next(leaf for leaf in report.leaves if leaf.path == path)


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_the_trap_of_shard_map_is_named_by_its_factor_and_axis(devices):
    report = fault(**compared(devices, trap_local, SGD))
    for name in ("W", "b", "out"):
        bad = leaf(report, f"state[0]['{name}']")
        assert bad.factor == pytest.approx(devices, rel=1e-4)
        assert f"exactly {devices} times" in bad.verdict
    assert f"{devices} = the size of mesh axis 'data'" in report.suggestion
    assert "Summed instead of averaged" in report.suggestion
    assert leaf(report, "metrics['loss']").status == "equal"
    assert report.steps == 1


def test_adamw_hides_the_trap_from_the_parameters_but_not_from_its_moments():
    report = fault(**compared(4, trap_local, ADAMW))
    assert all(abs(leaf(report, f"state[0]['{n}']").factor - 1) < 1e-2 for n in ("W", "b", "out"))
    assert leaf(report, "state[1][0].mu['W']").factor == pytest.approx(4, rel=1e-4)
    nu = leaf(report, "state[1][0].nu['W']")
    assert nu.factor == pytest.approx(16, rel=1e-4)
    assert "4 squared" in nu.verdict
    assert report.suggestion.startswith("the parameters agree")
    assert "hides a factor" in report.suggestion
    assert "Summed instead of averaged" in report.suggestion


def test_the_trap_is_found_on_a_state_that_has_been_trained_already():
    optimizer = optax.adamw(1e-2, weight_decay=0.1)
    state = host_state(optimizer)
    for seed in range(5):
        state, _ = one_device(optimizer)(state, host_batch(seed))
    report = fault(**compared(4, trap_local, optimizer, state=state))
    assert leaf(report, "state[1][0].mu['W']").factor == pytest.approx(4, rel=1e-3)
    assert "Summed instead of averaged" in report.suggestion


def without_moments(gradients):
    def step(params, batch):
        updates, _ = ADAMW.update(gradients(params, batch), ADAMW.init(params), params)
        return optax.apply_updates(params, updates), None

    return jax.jit(step)


def clipped(gradients, optimizer=optax.chain(optax.clip_by_global_norm(1e-3), ADAMW)):  # noqa: B008
    def step(state, batch):
        return apply(optimizer, state, gradients(state[0], batch)), None

    return jax.jit(step), optimizer


def test_a_warning_says_where_a_factor_can_hide_from_everything_compared():
    mesh = make_mesh(4)
    inner = jax.shard_map(trap_local, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()))
    summed, right = (lambda p, b: inner(p, b)[1]), jax.grad(mean_loss)
    state, batch = put(mesh, host_params(), host_batch())
    with pytest.warns(UserWarning, match="N times too large hides"):
        assert_equal_to_one_device(
            without_moments(summed), state, batch, reference=without_moments(right), rtol=1e-2
        )
    state, batch = put(mesh, host_state(clipped(right)[1]), host_batch())
    with pytest.warns(UserWarning, match="N times too large hides"):
        assert_equal_to_one_device(clipped(summed)[0], state, batch, reference=clipped(right)[0])


def test_a_metric_alone_is_reported_with_its_factor():
    def local(params, batch):
        loss, grads = right_local(params, batch)
        return psum(jax.lax.pcast(loss, "data", to="varying")), grads

    report = fault(**compared(4, local))
    assert [bad.path for bad in report.leaves if bad.status == "differs"] == ["metrics['loss']"]
    assert "exactly 4 times" in leaf(report, "metrics['loss']").verdict
    assert "metrics['loss'] is the sum of what the shards give" in report.suggestion
    assert "reduce it with pmean" in report.suggestion


@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
def test_a_missing_reduction_of_one_leaf_is_named_with_its_cure(optimizer):
    def local(params, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        return pmean(loss), pmean(grads) | {"b": grads["b"]}

    report = fault(**compared(4, local, optimizer, check_vma=False))
    bad = leaf(report, "state[0]['b']")
    assert "replicas differ" in bad.verdict
    assert leaf(report, "state[0]['W']").status == "equal"
    assert "['b'] lacks a reduction" in report.suggestion
    assert "pmean" in report.suggestion


@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
def test_a_mean_of_means_over_ragged_shards_is_named_with_the_counts(optimizer):
    batch = host_batch() | {"mask": (np.arange(EXAMPLES) < 41).astype(np.float32)}

    def local(params, batch):
        return right_local(params, batch, masked_loss)

    report = fault(**compared(4, local, optimizer, loss=masked_loss, batch=batch))
    assert "mean of means over ragged shards" in report.suggestion
    assert "12, 12, 12, 5 real examples" in report.suggestion


def test_a_shard_that_is_never_updated_is_named_with_its_device():
    mesh = make_mesh(4)
    rows = NamedSharding(mesh, P("data"))
    state = jax.device_put(np.arange(8, dtype=np.float32), rows)
    batch = jax.device_put(np.ones(8, np.float32), rows)

    def local(w, x):
        moves = jax.lax.axis_index("data") != 1
        return jnp.where(moves, w - 0.1 * x, w)

    inner = jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    report = fault(
        jax.jit(lambda w, x: (inner(w, x), ())),
        state,
        batch,
        reference=jax.jit(lambda w, x: (w - 0.1 * x, ())),
    )
    assert "isn't updated on cpu:1" in report.suggestion


def test_a_wrong_dtype_is_named_first():
    @jax.jit
    def step(state, batch):
        (params, opt_state), metrics = one_device(optax.sgd(2.0))(state, batch)
        return (params | {"out": params["out"].astype(jnp.bfloat16)}, opt_state), metrics

    state, batch = placed(2)
    report = fault(step, state, batch, reference=one_device(SGD))
    assert "state[0]['out'] has the wrong dtype (bfloat16, the reference's is float32)" in (
        report.suggestion
    )


def test_a_narrower_precision_inside_is_told_from_other_faults():
    def narrow(params, batch):
        return example_losses(params, batch, jnp.bfloat16).mean()

    state, batch = placed(2)
    report = fault(one_device(SGD, narrow), state, batch, reference=one_device(SGD))
    assert "computes in bfloat16, the reference in float32" in report.suggestion


def test_the_wrong_sign_is_named():
    mesh = make_mesh(2)
    state, batch = put(mesh, host_params(), host_batch())
    uphill = jax.jit(lambda p, b: jax.tree.map(jnp.negative, jax.grad(mean_loss)(p, b)))
    report = fault(sgd_step(uphill), state, batch, reference=sgd_step(jax.jit(jax.grad(mean_loss))))
    assert "uphill" in report.suggestion


def test_the_axis_of_a_2d_mesh_is_named():
    report = fault(**compared((2, 4), trap_local))
    assert "2 = the size of mesh axis 'data'" in report.suggestion


def test_a_fault_that_shows_later_is_reported_with_its_step():
    def negative(batch):
        return batch | {"y": batch["y"] - 100}

    _, late = put(make_mesh(4), None, negative(host_batch(1)))

    def loss(params, batch):
        return mean_loss(params, batch | {"y": batch["y"] % 100})

    def gradients(params, batch):
        return right_local(params, batch, loss)

    def wrong(params, batch):
        value, grads = gradients(params, batch)
        least = jax.lax.pmin(batch["y"].min(), "data")
        return value, jax.tree.map(lambda g: g * jnp.where(least < 0, 4, 1), grads)

    report = fault(**compared(4, wrong, loss=loss, more_batches=[late]))
    assert report.steps == 2
    assert "4 = the size of mesh axis 'data'" in report.suggestion


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda b: b | {"y": np.roll(b["y"], EXAMPLES // 4)}, "reference's 3, 0, 1, 2"),
        (lambda b: b | {"x": np.concatenate([b["x"][:24], b["x"][:24]])}, "24 of the reference's"),
        (lambda b: b | {"y": b["y"].astype(np.int16)}, "int16"),
    ],
    ids=["shifted labels", "rows twice", "dtype"],
)
def test_a_batch_that_is_put_together_wrongly_is_named_before_any_step(spoil, said):
    good = host_batch()
    good["y"] = np.arange(EXAMPLES, dtype=np.int32) % 7 + np.arange(EXAMPLES, dtype=np.int32) * 8
    state, batch = placed(4, batch=spoil(good))
    report = fault(one_device(SGD), state, batch, reference_batches=[good])
    assert said in report.suggestion
    assert report.steps == 0


def test_rows_in_another_order_are_fine_if_all_leaves_share_it():
    good = host_batch()
    good["id"] = np.arange(EXAMPLES)
    order = np.random.default_rng(0).permutation(EXAMPLES)
    state, batch = placed(4, batch={k: v[order] for k, v in good.items()})
    assert assert_equal_to_one_device(one_device(SGD), state, batch, reference_batches=[good]).ok
