"""A parallel step that does what one device does passes, whatever its placement."""

import warnings

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
    mean_loss,
    one_device,
    pmean,
    put,
    right_local,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import (
    HEADERS,
    NotEqualToOneDevice,
    assert_equal_to_one_device,
    sgd_step,
)

MORE = [host_batch(seed) for seed in (1, 2)]


def proves_all(report):
    return all(leaf.status == "equal" for leaf in report.leaves)


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 6, 8])
def test_the_same_jitted_step_on_sharded_arrays_passes(devices):
    state, batch = put(make_mesh(devices), host_state(SGD), host_batch())
    report = assert_equal_to_one_device(one_device(SGD), state, batch, steps=10, more_batches=MORE)
    assert proves_all(report), report
    assert (report.devices, report.steps) == (devices, 10)
    assert report.worst.relative_error < 1e-5
    assert ("only one device" in str(report)) == (devices == 1)


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_shard_map_with_params_made_varying_passes(devices):
    mesh = make_mesh(devices)
    step = mapped(SGD, mesh, right_local)
    state, batch = put(mesh, host_state(SGD), host_batch())
    report = assert_equal_to_one_device(step, state, batch, reference=one_device(SGD), steps=10)
    assert proves_all(report), report


def test_shard_map_without_vma_and_with_pmean_of_the_gradients_passes():
    def local(params, batch):
        return pmean(jax.value_and_grad(mean_loss)(params, batch))

    mesh = make_mesh(4)
    step = mapped(SGD, mesh, local, check_vma=False)
    state, batch = put(mesh, host_state(SGD), host_batch())
    assert assert_equal_to_one_device(step, state, batch, reference=one_device(SGD)).ok


@pytest.mark.parametrize(
    "optimizer",
    [
        ADAMW,
        optax.sgd(0.1, momentum=0.9),
        optax.lion(1e-3),
        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 10)),
    ],
    ids=["adamw", "momentum", "lion", "schedule"],
)
def test_every_optimizer_passes_with_its_state(optimizer):
    mesh = make_mesh(4)
    step = mapped(optimizer, mesh, right_local)
    state, batch = put(mesh, host_state(optimizer), host_batch())
    report = assert_equal_to_one_device(
        step, state, batch, reference=one_device(optimizer), steps=6, more_batches=MORE
    )
    assert report.ok


def test_a_norm_of_the_gradient_in_the_metrics_proves_what_clipping_hides():
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), SGD)

    @jax.jit
    def step(state, batch):
        grads = jax.grad(mean_loss)(state[0], batch)
        return apply(optimizer, state, grads), {"gradient norm": optax.tree.norm(grads)}

    state, batch = put(make_mesh(2), host_state(optimizer), host_batch())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assert_equal_to_one_device(step, state, batch).ok


def test_a_2d_mesh_with_tensor_sharding_passes():
    mesh = make_mesh(2, 4)
    specs = {"W": P(None, "model"), "b": P("model"), "out": P("model", None)}
    params = {
        name: jax.device_put(value, NamedSharding(mesh, specs[name]))
        for name, value in host_params().items()
    }
    state = (params, ADAMW.init(params))
    batch = jax.device_put(host_batch(), NamedSharding(mesh, P("data")))
    assert proves_all(assert_equal_to_one_device(one_device(ADAMW), state, batch, steps=5))


def test_fully_sharded_params_and_optimizer_state_pass():
    mesh = make_mesh(2)
    rows = NamedSharding(mesh, P("data"))
    params, opt_state = host_state(ADAMW)
    opt_state = jax.tree.map(lambda x: jax.device_put(x, rows) if x.ndim else x, opt_state)
    state = jax.device_put(params, rows), opt_state
    batch = jax.device_put(host_batch(), rows)
    report = assert_equal_to_one_device(one_device(ADAMW), state, batch)
    assert proves_all(report), report


def test_explicit_axes_pass_inside_and_outside_set_mesh():
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))
    state, batch = put(mesh, host_params(), host_batch()["x"])

    @jax.jit
    def step(params, x):
        loss, grads = jax.value_and_grad(
            lambda p: jnp.tanh(x @ p["W"] + p["b"]).dot(p["out"]).mean()
        )(params)
        return jax.tree.map(lambda p, g: p - g, params, grads), loss

    assert proves_all(assert_equal_to_one_device(step, state, batch))
    with jax.set_mesh(mesh):
        assert proves_all(assert_equal_to_one_device(step, state, batch))


@pytest.mark.parametrize("devices", [3, 8])
def test_bfloat16_compute_with_float32_params_passes(devices):
    def loss(params, batch):
        return example_losses(params, batch, jnp.bfloat16).mean()

    step = one_device(ADAMW, loss)
    state, batch = put(make_mesh(devices), host_state(ADAMW), host_batch())
    report = assert_equal_to_one_device(step, state, batch, steps=5)
    assert 1e-5 < report.worst.relative_error < 5e-2


def test_bfloat16_params_pass():
    state, batch = put(make_mesh(4), host_state(SGD, host_params(jnp.bfloat16)), host_batch())
    assert assert_equal_to_one_device(one_device(SGD), state, batch).ok


def test_gradients_and_ten_sgd_steps_are_compared_from_gradient_functions():
    mesh = make_mesh(4)
    inner = jax.shard_map(
        right_local, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=True
    )
    parallel = jax.jit(lambda params, batch: inner(params, batch)[1])
    state, batch = put(mesh, host_params(), host_batch())
    report = assert_equal_to_one_device(
        sgd_step(parallel), state, batch, reference=sgd_step(jax.jit(jax.grad(mean_loss))), steps=10
    )
    assert proves_all(report)
    assert [leaf.path for leaf in report.leaves][::3] == ["state['W']", "metrics['W']"]


def test_masked_ragged_batches_pass_when_sums_and_counts_are_reduced():
    def local(params, batch):
        params = jax.lax.pcast(params, "data", to="varying")
        count = jax.lax.psum(batch["mask"].sum(), "data")

        def loss(params):
            return (example_losses(params, batch) * batch["mask"]).sum() / count

        return jax.lax.psum(jax.value_and_grad(loss)(params), "data")

    def loss(params, batch):
        return (example_losses(params, batch) * batch["mask"]).sum() / batch["mask"].sum()

    mesh = make_mesh(4)
    batch = host_batch() | {"mask": (np.arange(EXAMPLES) < 41).astype(np.float32)}
    state, batch = put(mesh, host_state(SGD), batch)
    step = mapped(SGD, mesh, local)
    assert assert_equal_to_one_device(step, state, batch, reference=one_device(SGD, loss)).ok


def test_dropout_with_keys_folded_from_the_examples_position_passes():
    def losses(params, batch, key, first):
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(len(batch["y"])))
        kept = jax.vmap(lambda k: jax.random.bernoulli(k, 0.5, (6,)))(keys)
        return example_losses(params, batch | {"x": batch["x"] * kept}).mean()

    def local(params, key, batch):
        first = jax.lax.axis_index("data") * len(batch["y"])
        params = jax.lax.pcast(params, "data", to="varying")
        return pmean(jax.grad(losses)(params, batch, key, first))

    mesh = make_mesh(4)
    inner = jax.shard_map(
        local, mesh=mesh, in_specs=(P(), P(), P("data")), out_specs=P(), check_vma=True
    )

    def make(gradients):
        @jax.jit
        def step(state, batch):
            params, key = state
            key, now = jax.random.split(key)
            grads = gradients(params, now, batch)
            return (jax.tree.map(lambda p, g: p - 0.3 * g, params, grads), key), None

        return step

    reference = make(lambda params, key, batch: jax.grad(losses)(params, batch, key, 0))
    state, batch = put(mesh, (host_params(), jax.random.key(3)), host_batch())
    report = assert_equal_to_one_device(make(inner), state, batch, reference=reference)
    assert proves_all(report), report


def test_pmap_steps_pass_as_stacked():
    def step(params, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        loss, grads = jax.lax.pmean((loss, grads), "data")
        return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), {"loss": loss}

    parallel = jax.pmap(step, axis_name="data", devices=jax.devices()[:4])

    @jax.jit
    def reference(params, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 0.5 * g, params, grads), {"loss": loss}

    state = jax.tree.map(lambda x: np.stack([x] * 4), host_params())
    batch = jax.tree.map(lambda x: x.reshape(4, -1, *x.shape[1:]), host_batch())
    report = assert_equal_to_one_device(parallel, state, batch, reference=reference, stacked=True)
    assert proves_all(report), report
    assert report.devices == 4


def test_accuracy_may_flip_by_an_example_with_two_equal_logits():
    def make(least):
        def step(w, x):
            right = x @ w > least
            correct = right.astype(int)
            counts = {"accuracy": right.mean(), "correct": correct.sum()}
            table = jnp.zeros((2, 2), int).at[(x[:, 0] > 0).astype(int), correct].add(1)
            return w - 0.1 * x.mean(), counts | {"confusion": table}

        return jax.jit(step)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 2)).astype(np.float32)
    x[0] = (0.3, -0.3)  # w @ x[0] is zero, and rounding decides
    state, batch = put(make_mesh(4), jnp.ones(2), x)
    report = assert_equal_to_one_device(make(1e-9), state, batch, reference=make(-1e-9), steps=1)
    assert ["decision" in leaf.verdict for leaf in report.leaves] == [False, True, True, True]

    nearest = float(min(value for value in x.sum(axis=1) if value > 1e-6))
    step, reference = make(1.01 * nearest), make(0.99 * nearest)
    with pytest.raises(NotEqualToOneDevice):  # an example less, but none is on this edge
        assert_equal_to_one_device(step, state, batch, reference=reference, steps=1)


def test_rows_suit_a_table_and_the_text_a_terminal():
    state, batch = put(make_mesh(2), host_state(SGD), host_batch())
    report = assert_equal_to_one_device(one_device(SGD), state, batch)
    assert [row[0] for row in report.rows] == [
        "state[0]['W']",
        "state[0]['b']",
        "state[0]['out']",
        "metrics['loss']",
    ]
    assert all(len(row) == len(HEADERS) and abs(row[2] - 1) < 1e-5 for row in report.rows)
    assert str(report).splitlines()[0] == "equal after 3 step(s) on 2 device(s), against one device"
