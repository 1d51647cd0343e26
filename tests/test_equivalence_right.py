"""A parallel step that does what one device does passes, whatever its placement."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from equivalence_steps import (
    ADAMW,
    SGD,
    apply,
    compared,
    example_losses,
    host_batch,
    host_params,
    host_state,
    make_mesh,
    mean_loss,
    one_device,
    placed,
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
    state, batch = placed(devices)
    report = assert_equal_to_one_device(one_device(SGD), state, batch, steps=10, more_batches=MORE)
    assert proves_all(report), report
    assert (report.devices, report.steps) == (devices, 10)
    assert report.worst.relative_error < 1e-5
    assert ("only one device" in str(report)) == (devices == 1)


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
    arguments = compared(4, right_local, optimizer, steps=6, more_batches=MORE)
    report = assert_equal_to_one_device(**arguments)
    assert report.ok


def test_a_norm_of_the_gradient_in_the_metrics_proves_what_clipping_hides():
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), SGD)

    @jax.jit
    def step(state, batch):
        grads = jax.grad(mean_loss)(state[0], batch)
        return apply(optimizer, state, grads), {"gradient norm": optax.tree.norm(grads)}

    state, batch = placed(2, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assert_equal_to_one_device(step, state, batch).ok


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
    state, batch = placed(devices, ADAMW)
    report = assert_equal_to_one_device(step, state, batch, steps=5)
    assert 1e-5 < report.worst.relative_error < 5e-2


def test_bfloat16_params_pass():
    state, batch = placed(4, SGD, host_params(jnp.bfloat16))
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
    state, batch = placed(2)
    report = assert_equal_to_one_device(one_device(SGD), state, batch)
    assert [row[0] for row in report.rows] == [
        "state[0]['W']",
        "state[0]['b']",
        "state[0]['out']",
        "metrics['loss']",
    ]
    assert all(len(row) == len(HEADERS) and abs(row[2] - 1) < 1e-5 for row in report.rows)
    assert str(report).splitlines()[0] == "equal after 3 step(s) on 2 device(s), against one device"
