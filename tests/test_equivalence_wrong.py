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
    example_losses,
    host_batch,
    host_params,
    host_state,
    make_mesh,
    mapped,
    masked_loss,
    mean_loss,
    one_device,
    pmean,
    psum,
    put,
    right_local,
    trap_local,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import (
    NotEqualToOneDevice,
    assert_equal_to_one_device,
    sgd_step,
)


def fault(step, state, batch, **options):
    """The report of a comparison that must fail."""
    with pytest.raises(NotEqualToOneDevice) as failure:
        assert_equal_to_one_device(step, state, batch, **options)
    report = failure.value.report
    assert report.suggestion in str(failure.value)
    return report


def fault_in(local, devices=4, optimizer=SGD, reference=None, batch=None, check_vma=True):
    """The report on shard_map with `local` inside."""
    mesh = make_mesh(devices)
    state, batch = put(mesh, host_state(optimizer), batch or host_batch())
    step = mapped(optimizer, mesh, local, check_vma)
    return fault(step, state, batch, reference=reference or one_device(optimizer))


def leaf(report, path):
    return next(leaf for leaf in report.leaves if leaf.path == path)


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_the_trap_of_shard_map_is_named_by_its_factor_and_axis(devices):
    report = fault_in(trap_local, devices)
    for name in ("W", "b", "out"):
        bad = leaf(report, f"state[0]['{name}']")
        assert bad.factor == pytest.approx(devices, rel=1e-4)
        assert f"exactly {devices} times" in bad.verdict
    assert f"{devices} = the size of mesh axis 'data'" in report.suggestion
    assert "Summed instead of averaged" in report.suggestion
    assert leaf(report, "metrics['loss']").status == "equal"
    assert report.steps == 1


def test_adamw_hides_the_trap_from_the_parameters_but_not_from_its_moments():
    report = fault_in(trap_local, 4, ADAMW)
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
    state, batch = host_state(optimizer), host_batch()
    for seed in range(5):
        state, _ = one_device(optimizer)(state, host_batch(seed))
    mesh = make_mesh(4)
    state, batch = put(mesh, state, batch)
    report = fault(
        mapped(optimizer, mesh, trap_local), state, batch, reference=one_device(optimizer)
    )
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


def test_psum_in_place_of_pmean_shows_in_the_loss_too():
    def local(params, batch):
        params = jax.lax.pcast(params, "data", to="varying")
        return psum(jax.value_and_grad(mean_loss)(params, batch))

    report = fault_in(local)
    assert "psum where pmean belongs" in report.suggestion
    assert leaf(report, "metrics['loss']").factor == pytest.approx(4, rel=1e-4)


def test_a_metric_alone_is_reported_with_its_factor():
    def local(params, batch):
        loss, grads = right_local(params, batch)
        return psum(jax.lax.pcast(loss, "data", to="varying")), grads

    report = fault_in(local)
    assert [bad.path for bad in report.leaves if bad.status == "differs"] == ["metrics['loss']"]
    assert "exactly 4 times" in leaf(report, "metrics['loss']").verdict
    assert "metrics['loss'] is the sum of what the shards give" in report.suggestion
    assert "reduce it with pmean" in report.suggestion


def test_averaging_twice_is_named():
    def local(params, batch):
        params = jax.lax.pcast(params, "data", to="varying")

        def loss(params):
            return example_losses(params, batch).sum() / EXAMPLES

        return pmean(jax.value_and_grad(loss)(params))

    report = fault_in(local)
    assert leaf(report, "state[0]['W']").factor == pytest.approx(0.25, rel=1e-4)
    assert "1/4" in report.suggestion
    assert "Averaged twice" in report.suggestion


@pytest.mark.parametrize("optimizer", [SGD, ADAMW], ids=["sgd", "adamw"])
def test_a_missing_reduction_of_one_leaf_is_named_with_its_cure(optimizer):
    def local(params, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        return pmean(loss), pmean(grads) | {"b": grads["b"]}

    report = fault_in(local, optimizer=optimizer, check_vma=False)
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

    report = fault_in(local, 4, optimizer, one_device(optimizer, masked_loss), batch)
    assert "mean of means over ragged shards" in report.suggestion
    assert "12, 12, 12, 5 real examples" in report.suggestion


def test_a_stale_replica_is_named_with_its_device():
    mesh = make_mesh(4)

    def late(old, new):
        stale = jax.lax.axis_index("data") == 2
        return jax.tree.map(lambda o, n: jnp.where(stale, o, n), old, new)

    keep = jax.shard_map(late, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)

    @jax.jit
    def step(state, batch):
        (params, opt_state), metrics = one_device(SGD)(state, batch)
        return (keep(state[0], params), opt_state), metrics

    state, batch = put(mesh, host_state(SGD), host_batch())
    report = fault(step, state, batch, reference=one_device(SGD))
    assert "cpu:2 still holds its old value" in report.suggestion
    assert "cpu:2 of 4 copies" in leaf(report, "state[0]['W']").verdict


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

    state, batch = put(make_mesh(2), host_state(SGD), host_batch())
    report = fault(step, state, batch, reference=one_device(SGD))
    assert "state[0]['out'] has the wrong dtype (bfloat16, the reference's is float32)" in (
        report.suggestion
    )


def test_a_narrower_precision_inside_is_told_from_other_faults():
    def narrow(params, batch):
        return example_losses(params, batch, jnp.bfloat16).mean()

    state, batch = put(make_mesh(2), host_state(SGD), host_batch())
    report = fault(one_device(SGD, narrow), state, batch, reference=one_device(SGD))
    assert "computes in bfloat16, the reference in float32" in report.suggestion


def dropout_loss(params, batch, key):
    kept = jax.random.bernoulli(key, 0.5, batch["x"].shape)
    return example_losses(params, batch | {"x": batch["x"] * kept}).mean()


def per_example_dropout_loss(params, batch, key):
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(batch["y"])))
    kept = jax.vmap(lambda k: jax.random.bernoulli(k, 0.5, (6,)))(keys)
    return example_losses(params, batch | {"x": batch["x"] * kept}).mean()


def keyed(gradients):
    @jax.jit
    def step(state, batch):
        params, key = state
        key, now = jax.random.split(key)
        grads = gradients(params, batch, now)
        return (jax.tree.map(lambda p, g: p - 0.3 * g, params, grads), key), None

    return step


@pytest.mark.parametrize(
    ("key_of", "loss", "cause"),
    [
        (lambda key, i: key, dropout_loss, "the same random key on every device"),
        (jax.random.fold_in, per_example_dropout_loss, "likely the random numbers"),
    ],
    ids=["one key for all devices", "a key for each device"],
)
def test_dropout_keys_that_depend_on_the_devices_are_named(key_of, loss, cause):
    mesh = make_mesh(4)

    def local(params, batch, key):
        params = jax.lax.pcast(params, "data", to="varying")
        return pmean(jax.grad(loss)(params, batch, key_of(key, jax.lax.axis_index("data"))))

    inner = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data"), P()), out_specs=P())
    state, batch = put(mesh, (host_params(), jax.random.key(3)), host_batch())
    report = fault(keyed(inner), state, batch, reference=keyed(jax.grad(loss)))
    assert cause in report.suggestion
    assert leaf(report, "state[1]").status == "equal"


@pytest.mark.parametrize(
    ("pairs", "order"),
    [
        ([(i, (i + 1) % 4) for i in range(4)], "3, 0, 1, 2"),
        ([(0, 2), (2, 0), (1, 1), (3, 3)], "2, 1, 0, 3"),
    ],
    ids=["off by one", "two swapped"],
)
def test_labels_that_meet_another_shards_images_are_named(pairs, order):
    def local(params, batch):
        moved = jax.lax.ppermute(batch["y"], "data", pairs)
        return right_local(params, batch | {"y": moved})

    report = fault_in(local)
    assert "['y'] meet the wrong part of the batch" in report.suggestion or (
        "['x'] meet the wrong part of the batch" in report.suggestion
    )
    assert "order" in report.suggestion


def test_weight_decay_once_per_device_is_named():
    def local(params, batch):
        loss, grads = right_local(params, batch)
        decay = jax.tree.map(lambda p: jax.lax.pcast(0.01 * p, "data", to="varying"), params)
        return loss, jax.tree.map(jnp.add, grads, psum(decay))

    def loss(params, batch):
        return mean_loss(params, batch) + 0.005 * optax.tree.norm(params, squared=True)

    def reference(state, batch):
        grads = jax.grad(loss)(state[0], batch)
        return apply(SGD, state, grads), {"loss": mean_loss(state[0], batch)}

    report = fault_in(local, reference=jax.jit(reference))
    assert "weight decay" in report.suggestion
    assert leaf(report, "state[0]['W']").verdict.startswith("exactly 1 times")


def test_gradients_clipped_before_they_are_reduced_are_named():
    clip = optax.clip_by_global_norm(0.05)

    def local(params, batch):
        params = jax.lax.pcast(params, "data", to="varying")
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        return pmean((loss, clip.update(grads, optax.EmptyState())[0]))

    @jax.jit
    def reference(state, batch):
        loss, grads = jax.value_and_grad(mean_loss)(state[0], batch)
        return apply(SGD, state, clip.update(grads, optax.EmptyState())[0]), {"loss": loss}

    assert "clipped (or normalised) to a norm before" in fault_in(local, reference=reference).suggestion


def test_gradients_of_one_shard_only_are_named():
    def local(params, batch):
        params = jax.lax.pcast(params, "data", to="varying")
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        mine = jax.lax.axis_index("data") == 3
        return pmean(loss), psum(jax.tree.map(lambda g: jnp.where(mine, g, 0), grads))

    assert "only shard 3 of the batch counts" in fault_in(local).suggestion


def test_a_scaled_learning_rate_is_told_from_a_summed_gradient_by_the_moments():
    mesh = make_mesh(4)
    fast, slow = optax.sgd(0.4, momentum=0.9), optax.sgd(0.1, momentum=0.9)
    state, batch = put(mesh, host_state(slow), host_batch())
    report = fault(mapped(fast, mesh, right_local), state, batch, reference=one_device(slow))
    assert "a learning rate multiplied" in report.suggestion
    assert "moments agree" in report.suggestion


def test_the_wrong_sign_is_named():
    mesh = make_mesh(2)
    state, batch = put(mesh, host_params(), host_batch())
    uphill = jax.jit(lambda p, b: jax.tree.map(jnp.negative, jax.grad(mean_loss)(p, b)))
    report = fault(sgd_step(uphill), state, batch, reference=sgd_step(jax.jit(jax.grad(mean_loss))))
    assert "uphill" in report.suggestion


def test_the_axis_of_a_2d_mesh_is_named():
    mesh = make_mesh(2, 4)
    state, batch = put(mesh, host_state(SGD), host_batch())
    step = mapped(SGD, mesh, trap_local)
    report = fault(step, state, batch, reference=one_device(SGD))
    assert "2 = the size of mesh axis 'data'" in report.suggestion


def test_a_fault_that_shows_later_is_reported_with_its_step():
    def negative(batch):
        return batch | {"y": batch["y"] - 100}

    mesh = make_mesh(4)
    state, batch = put(mesh, host_state(SGD), host_batch())
    _, late = put(mesh, None, negative(host_batch(1)))

    def loss(params, batch):
        return mean_loss(params, batch | {"y": batch["y"] % 100})

    def gradients(params, batch):
        return right_local(params, batch, loss)

    def wrong(params, batch):
        value, grads = gradients(params, batch)
        least = jax.lax.pmin(batch["y"].min(), "data")
        return value, jax.tree.map(lambda g: g * jnp.where(least < 0, 4, 1), grads)

    report = fault(
        mapped(SGD, mesh, wrong),
        state,
        batch,
        more_batches=[late],
        reference=one_device(SGD, loss),
    )
    assert report.steps == 2
    assert "4 = the size of mesh axis 'data'" in report.suggestion


def test_replicas_that_differ_from_the_start_are_named():
    mesh = make_mesh(4)
    state, batch = put(mesh, host_state(SGD), host_batch())
    drift = jax.shard_map(
        lambda p: p + jax.lax.axis_index("data"),
        mesh=mesh,
        in_specs=P(),
        out_specs=P(),
        check_vma=False,
    )
    params = state[0] | {"b": jax.jit(drift)(state[0]["b"])}
    report = fault(one_device(SGD), (params, state[1]), batch)
    assert "before the first step" in report.suggestion
    assert report.worst.path == "state[0]['b']"


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
    state, batch = put(make_mesh(4), host_state(SGD), spoil(good))
    report = fault(one_device(SGD), state, batch, reference_batches=[good])
    assert said in report.suggestion
    assert report.steps == 0


def test_rows_in_another_order_are_fine_if_all_leaves_share_it():
    good = host_batch()
    good["id"] = np.arange(EXAMPLES)
    order = np.random.default_rng(0).permutation(EXAMPLES)
    state, batch = put(make_mesh(4), host_state(SGD), {k: v[order] for k, v in good.items()})
    assert assert_equal_to_one_device(one_device(SGD), state, batch, reference_batches=[good]).ok
