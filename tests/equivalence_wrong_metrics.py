"""Metrics and running statistics that aren't those of the whole batch."""

import jax
import jax.numpy as jnp
import numpy as np
from equivalence_case import Case, cases
from equivalence_steps import (
    MOMENTUM,
    apply,
    example_losses,
    host_batch,
    host_state,
    make_mesh,
    mean_loss,
    own_gradients,
    pmean,
    put,
)
from equivalence_wrong_batches import RAGGED
from jax.sharding import PartitionSpec as P

METRICS: list[Case] = []
wrong = cases(METRICS)


def measured(n, metric, reduce, out=None, check_vma=True, batch=None):
    """Compare a step that returns `reduce(metric(params, shard))` beside right gradients."""
    mesh = make_mesh(n)

    def local(params, batch):
        return pmean(own_gradients(params, batch)[1]), reduce(metric(params, batch))

    inner = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(P(), P("data")),
        out_specs=(P(), out or P()),
        check_vma=check_vma,
    )

    @jax.jit
    def step(state, batch):
        grads, found = inner(state[0], batch)
        return apply(MOMENTUM, state, grads), {"metric": found}

    @jax.jit
    def reference(state, batch):
        grads = jax.grad(mean_loss)(state[0], batch)
        return apply(MOMENTUM, state, grads), {"metric": metric(state[0], batch)}

    state, batch = put(mesh, host_state(MOMENTUM), batch or host_batch())
    return {"step": step, "state": state, "batch": batch, "reference": reference}


def predicted(params, batch):
    return jnp.argmax(jnp.tanh(batch["x"] @ params["W"] + params["b"]) @ params["out"], axis=1)


def correct(params, batch):
    return (predicted(params, batch) == batch["y"]).sum().astype(jnp.float32)


def confusion(params, batch):
    return jnp.zeros((4, 4), jnp.int32).at[batch["y"], predicted(params, batch)].add(1)


@wrong("a ragged loss averaged over the shards' means", "mean of means over ragged shards")
def _(n):
    def metric(params, batch):
        return (example_losses(params, batch) * batch["mask"]).sum() / batch["mask"].sum()

    return measured(n, metric, pmean, batch=RAGGED)


@wrong("a count averaged over the devices", "one device's is their sum", "psum")
def _(n):
    return measured(n, correct, pmean)


@wrong("a maximum averaged over the devices", "one device's is their maximum", "pmax")
def _(n):
    return measured(n, lambda p, b: example_losses(p, b).max(), pmean)


@wrong("a loss returned per device", "once per device", "pmean")
def _(n):
    return measured(n, mean_loss, lambda m: m[None], P("data"))


@wrong("a confusion matrix of one shard", "lacks a reduction", "the sum", "psum")
def _(n):
    return measured(n, confusion, lambda m: m, check_vma=False)


@wrong("precision as a mean of the shards' precisions", "no plain mean", "numerator")
def _(n):
    def metric(params, batch):
        chosen = predicted(params, batch) % 2 == batch["y"] % 2
        return jnp.abs(batch["x"][:, 0] * chosen).sum() / jnp.abs(batch["x"][:, 0]).sum()

    return measured(n, metric, pmean)


def normalising_loss(params, running, batch):
    """A mean loss with batch normalisation in it, and its new running statistics."""
    hidden = batch["x"] @ params["W"]
    mean, var = hidden.mean(0), hidden.var(0)
    hidden = jnp.tanh((hidden - mean) * jax.lax.rsqrt(var + 1e-3) + params["b"])
    losses = -jax.nn.log_softmax(hidden @ params["out"])[jnp.arange(len(batch["y"])), batch["y"]]
    new = {"mean": 0.9 * running["mean"] + 0.1 * mean, "var": 0.9 * running["var"] + 0.1 * var}
    return losses.mean(), new


def normalised(n, reduce_running=pmean):
    """Compare steps with batch normalisation; each shard takes statistics of its own."""
    gradients = jax.value_and_grad(normalising_loss, has_aux=True)

    def local(params, running, batch):
        (value, new), grads = gradients(params, running, batch)
        return (pmean(value), reduce_running(new)), pmean(grads)

    def make(gradients):
        @jax.jit
        def step(state, batch):
            train, running = state
            (value, running), grads = gradients(train[0], running, batch)
            return (apply(MOMENTUM, train, grads), running), {"loss": value}

        return step

    mesh, specs = make_mesh(n), (P(), P(), P("data"))
    inner = jax.shard_map(
        local, mesh=mesh, in_specs=specs, out_specs=((P(), P()), P()), check_vma=False
    )
    running = {"mean": np.zeros(8, np.float32), "var": np.ones(8, np.float32)}
    state, batch = put(mesh, (host_state(MOMENTUM), running), host_batch())
    return {"step": make(inner), "state": state, "batch": batch, "reference": make(gradients)}


@wrong("batch statistics per shard", "batch statistics", "per shard")
def _(n):
    return normalised(n)


@wrong("running statistics that aren't reduced", "lacks a reduction", "['mean']")
def _(n):
    return normalised(n, reduce_running=lambda new: new)
