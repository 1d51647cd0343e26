"""A small training problem, its step for one device, and parallel steps, right and wrong."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import NotEqualToOneDevice, assert_equal_to_one_device

EXAMPLES = 48  # divides by 1, 2, 3, 4, 6 and 8
SGD, ADAMW = optax.sgd(0.5), optax.adamw(1e-2)
MOMENTUM = optax.sgd(0.1, momentum=0.9)


def make_mesh(*shape, names=("data", "model")):
    devices = np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)
    return Mesh(devices, names[: len(shape)])


def host_params(dtype=np.float32):
    rng = np.random.default_rng(1)
    return {
        "W": rng.normal(size=(6, 8)).astype(dtype),
        "b": rng.normal(size=8).astype(dtype),
        "out": rng.normal(size=(8, 4)).astype(dtype),
    }


def host_batch(seed=0, examples=EXAMPLES):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, examples).astype(np.int32)
    images = rng.normal(size=(examples, 6)) + labels[:, None]
    return {"x": images.astype(np.float32), "y": labels}


def host_state(optimizer, params=None):
    params = jax.tree.map(jnp.asarray, params or host_params())
    return params, optimizer.init(params)


def example_losses(params, batch, dtype=None):
    x, w, b, out = (v.astype(dtype or v.dtype) for v in (batch["x"], *params.values()))
    logits = jnp.tanh(x @ w + b) @ out
    return optax.softmax_cross_entropy_with_integer_labels(
        logits.astype(jnp.promote_types(logits.dtype, jnp.float32)), batch["y"]
    )


def mean_loss(params, batch):
    return example_losses(params, batch).mean()


def masked_loss(params, batch):
    return (example_losses(params, batch) * batch["mask"]).sum() / batch["mask"].sum()


def apply(optimizer, state, grads):
    params, opt_state = state
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


@functools.cache
def one_device(optimizer, loss=mean_loss):
    @jax.jit
    def step(state, batch):
        value, grads = jax.value_and_grad(loss)(state[0], batch)
        return apply(optimizer, state, grads), {"loss": value}

    return step


@functools.cache
def mapped(optimizer, mesh, local, check_vma=True):
    """Jit a step whose loss and gradients are `local(params, batch shard)` inside shard_map."""
    inner = jax.shard_map(
        local, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=check_vma
    )

    @jax.jit
    def step(state, batch):
        value, grads = inner(state[0], batch)
        return apply(optimizer, state, grads), {"loss": value}

    return step


def pmean(tree):
    return jax.lax.pmean(tree, "data")


def psum(tree):
    return jax.lax.psum(tree, "data")


def each(function, *trees):
    return jax.tree.map(function, *trees)


def own_gradients(params, batch, loss=mean_loss):
    """Loss and gradients of what this device has, not reduced yet."""
    params = jax.lax.pcast(params, "data", to="varying")
    return jax.value_and_grad(loss)(params, batch)


def right_local(params, batch, loss=mean_loss):
    """What each device does: its own gradient, then the mean."""
    return pmean(own_gradients(params, batch, loss))


def trap_local(params, batch, loss=mean_loss):
    """The gradient of replicated params comes summed, and pmean does nothing to it."""
    return pmean(jax.value_and_grad(loss)(params, batch))


def put(mesh, state, batch, *names):
    """Replicate the state, split the batch by its first axis."""
    sharded = NamedSharding(mesh, P(names or "data"))
    return jax.device_put(state, NamedSharding(mesh, P())), jax.device_put(batch, sharded)


def placed(devices, optimizer=SGD, params=None, batch=None):
    """State and batch on a mesh of so many devices, or of such a shape."""
    mesh = make_mesh(*devices) if isinstance(devices, tuple) else make_mesh(devices)
    return put(mesh, host_state(optimizer, params), batch or host_batch())


def fault(*arguments, **options):
    """The report of a comparison that must fail."""
    with pytest.raises(NotEqualToOneDevice) as failure:
        assert_equal_to_one_device(*arguments, **options)
    report = failure.value.report
    assert report.suggestion in str(failure.value)
    return report


def compared(devices, local, optimizer=MOMENTUM, *, loss=mean_loss, check_vma=True, **other):
    """Arguments that compare shard_map with `local` inside to `loss` on one device."""
    mesh = make_mesh(*devices) if isinstance(devices, tuple) else make_mesh(devices)
    state, batch = put(
        mesh,
        other.pop("state", None) or host_state(optimizer),
        other.pop("batch", None) or host_batch(),
    )
    step = mapped(optimizer, mesh, local, check_vma)
    reference = one_device(optimizer, loss)
    return {"step": step, "state": state, "batch": batch, "reference": reference} | other
