"""Updates that are wrong though the gradient is right: decay, rates, counters, moments, buffers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from equivalence_case import Case, cases
from equivalence_steps import (
    ADAMW,
    MOMENTUM,
    apply,
    compared,
    each,
    host_batch,
    host_state,
    make_mesh,
    mean_loss,
    one_device,
    own_gradients,
    pmean,
    psum,
    put,
    right_local,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

OPTIMIZERS: list[Case] = []
wrong = cases(OPTIMIZERS)


def penalised(params, batch):
    return mean_loss(params, batch) + 0.005 * optax.tree.norm(params, squared=True)


@wrong("weight decay added up over the devices", "weight decay", "another number of times")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        decay = each(lambda p: jax.lax.pcast(0.01 * p, "data", to="varying"), params)
        return pmean(loss), each(jnp.add, pmean(grads), psum(decay))

    return compared(n, local, loss=penalised, check_metrics=False)


@wrong("weight decay on one device, then averaged", "weight decay", "another number of times")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        first = jnp.where(jax.lax.axis_index("data") == 0, 0.01, 0.0)
        return pmean(loss), pmean(each(lambda g, p: g + first * p, grads, params))

    return compared(n, local, loss=penalised, check_metrics=False)


@wrong("a learning rate scaled by the number of devices", "a learning rate multiplied")
def _(n):
    arguments = compared(n, right_local, optax.sgd(0.01 * n, momentum=0.9))
    return arguments | {"reference": one_device(optax.sgd(0.01, momentum=0.9))}


@wrong("a learning rate scaled twice", "a learning rate multiplied")
def _(n):
    arguments = compared(n, right_local, optax.sgd(0.01 * n * n, momentum=0.9))
    return arguments | {"reference": one_device(optax.sgd(0.01 * n, momentum=0.9))}


@wrong("a learning rate that isn't scaled with the batch", "a learning rate multiplied or divided")
def _(n):
    arguments = compared(n, right_local, optax.sgd(0.01, momentum=0.9))
    return arguments | {"reference": one_device(optax.sgd(0.01 * n, momentum=0.9))}


@wrong("the optimizer's state isn't replaced", "isn't updated on any device", "optimizer state")
def _(n):
    arguments = compared(n, right_local)

    def step(state, batch):
        (params, _), metrics = arguments["step"](state, batch)
        return (params, state[1]), metrics

    return arguments | {"step": step}


def inside(n, local, optimizer, reference=None, **other):
    """Compare a step whose optimizer runs in shard_map: local(state, batch) -> (state, loss)."""
    mesh = make_mesh(n)
    inner = jax.shard_map(
        local, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P()), check_vma=False
    )

    @jax.jit
    def step(state, batch):
        state, loss = inner(state, batch)
        return state, {"loss": loss}

    state, batch = put(mesh, host_state(optimizer), host_batch())
    reference = reference or one_device(optimizer)
    return {"step": step, "state": state, "batch": batch, "reference": reference} | other


@wrong("momentum kept per device, updates averaged", "trace", "lacks a reduction")
def _(n):
    def local(state, batch):
        loss, grads = jax.value_and_grad(mean_loss)(state[0], batch)
        updates, opt_state = MOMENTUM.update(grads, state[1])
        return (optax.apply_updates(state[0], pmean(updates)), opt_state), pmean(loss)

    return inside(n, local, MOMENTUM)


@wrong("an optimizer step per device, parameters averaged", "the optimizer's step for its own")
def _(n):
    def local(state, batch):
        loss, grads = jax.value_and_grad(mean_loss)(state[0], batch)
        return pmean((apply(ADAMW, state, grads), loss))

    return inside(n, lambda s, b: whole_counts(s, *local(s, b)), ADAMW)


def whole_counts(old, new, loss):
    """The mean of counters is a float; counters go on as they are."""
    return jax.tree.map(lambda o, m: m.astype(o.dtype), old, new), loss


WARMING = optax.adam(optax.linear_schedule(0.0, 1e-2, 10))


@wrong("the schedule counts once per device", "counts", "once per device", "schedule")
def _(n):
    def local(state, batch):
        loss, grads = pmean(jax.value_and_grad(mean_loss)(state[0], batch))
        params, opt_state = apply(WARMING, state, grads)
        summed = lambda x: psum(x) if x.dtype == np.int32 else x  # noqa: E731
        return (params, each(summed, opt_state)), loss

    return inside(n, local, WARMING)


def micro(n, step, optimizer=MOMENTUM, count=2, **other):
    """Compare a step that takes (micro-batches, examples, ...)."""
    mesh = make_mesh(n)
    batch = each(lambda x: x.reshape(count, -1, *x.shape[1:]), host_batch())
    batch = jax.device_put(batch, NamedSharding(mesh, P(None, "data")))
    state = jax.device_put(host_state(optimizer), NamedSharding(mesh, P()))
    arguments = {"step": jax.jit(step), "state": state, "batch": batch, "micro_batches": True}
    return arguments | {"reference": one_device(optimizer)} | other


def accumulated(state, batch, add):
    """Loss and gradients of all micro-batches, put together by `add`."""

    def body(total, part):
        return each(add, total, jax.value_and_grad(mean_loss)(state[0], part)), None

    return jax.lax.scan(body, each(jnp.zeros_like, (jnp.zeros(()), state[0])), batch)[0]


@wrong("accumulated gradients that aren't divided", "number of micro-batches", "never divided")
def _(n):
    count = 4 if n == 3 else 6  # another number than that of the devices

    def step(state, batch):
        loss, grads = accumulated(state, batch, jnp.add)
        return apply(MOMENTUM, state, grads), {"loss": loss / count}

    return micro(n, step, count=count)


@wrong("the last micro-batch replaces the others", "only micro-batch 1 of the batch counts")
def _(n):
    def step(state, batch):
        loss, grads = accumulated(state, batch, lambda total, new: new)
        return apply(MOMENTUM, state, grads), {"loss": loss}

    return micro(n, step)


@wrong("an optimizer step for each micro-batch", "once for each micro-batch")
def _(n):
    def step(state, batch):
        state, metrics = jax.lax.scan(one_device(MOMENTUM), state, batch)
        return state, {"loss": metrics["loss"].mean()}

    return micro(n, step)


@wrong("the schedule counts micro-batches", "once per micro-batch")
def _(n):
    def step(state, batch):
        loss, grads = each(lambda x: x / len(batch["y"]), accumulated(state, batch, jnp.add))
        params, opt_state = apply(WARMING, state, grads)
        more = lambda o, x: o + len(batch["y"]) if x.dtype == np.int32 else x  # noqa: E731
        return (params, each(more, state[1], opt_state)), {"loss": loss}

    return micro(n, step, WARMING, count=4 if n == 3 else 6)


@wrong("a donated buffer is used again", "donated", refused=True)
def _(n):
    arguments = compared(n, right_local)
    donating = jax.jit(arguments["step"], donate_argnums=0)

    def step(state, batch):
        (params, opt_state), metrics = donating(state, batch)
        return (params, opt_state), metrics | {"norm": optax.tree.norm(state[0])}

    return arguments | {"step": step}
