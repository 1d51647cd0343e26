"""Gradients that aren't reduced, or in another way than they should."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from equivalence_case import Case, cases
from equivalence_steps import (
    EXAMPLES,
    MOMENTUM,
    apply,
    compared,
    each,
    example_losses,
    host_batch,
    host_state,
    make_mesh,
    mapped,
    mean_loss,
    one_device,
    own_gradients,
    pmean,
    psum,
    put,
    trap_local,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

REDUCTIONS: list[Case] = []
wrong = cases(REDUCTIONS)


@wrong("psum where pmean belongs", "psum where pmean belongs")
def _(n):
    return compared(n, lambda p, b: psum(own_gradients(p, b)))


@wrong("pmean of gradients that shard_map has summed", "already summed", "check_vma=True")
def _(n):
    return compared(n, trap_local)


@wrong("divided by the devices after pmean", "Averaged twice")
def _(n):
    return compared(n, lambda p, b: each(lambda g: g / n, pmean(own_gradients(p, b))))


@wrong("one leaf isn't reduced", "state[0]['b'] lacks a reduction", "its own shard")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        return pmean(loss), pmean(grads) | {"b": grads["b"]}

    return compared(n, local, check_vma=False)


@wrong("no gradient is reduced", "lacks a reduction", "its own shard", "pmean")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        return pmean(loss), grads

    return compared(n, local, check_vma=False)


@wrong("reduced over one axis of a 2-D mesh only", "lacks a reduction over mesh axis 'model'")
def _(n):
    mesh, axes = make_mesh(*((n // 2, 2) if n % 2 == 0 else (1, n))), ("data", "model")

    def local(params, batch):
        loss, grads = jax.value_and_grad(mean_loss)(params, batch)
        return jax.lax.pmean(loss, axes), pmean(grads)

    inner = jax.shard_map(
        local, mesh=mesh, in_specs=(P(), P(axes)), out_specs=(P(), P()), check_vma=False
    )

    @jax.jit
    def step(state, batch):
        loss, grads = inner(state[0], batch)
        return apply(MOMENTUM, state, grads), {"loss": loss}

    state, batch = put(mesh, host_state(MOMENTUM), host_batch(), *axes)
    return {"step": step, "state": state, "batch": batch, "reference": one_device(MOMENTUM)}


@wrong("one shard's gradient for all", "only shard", "counts")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        mine = jax.lax.axis_index("data") == n - 1
        return pmean(loss), psum(each(lambda g: jnp.where(mine, g, 0), grads))

    return compared(n, local)


@wrong("the last shard left out of the mean", "of the batch")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        mine = jax.lax.axis_index("data") < n - 1
        return pmean(loss), psum(each(lambda g: jnp.where(mine, g, 0) / (n - 1), grads))

    return compared(n, local)


@wrong("a ring of ppermute that ends after one hop", "lacks a reduction")
def _(n):
    ring = [(i, (i + 1) % n) for i in range(n)]

    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        passed = jax.lax.ppermute(grads, "data", ring)
        return pmean(loss), each(lambda g, h: (g + 2 * h) / 3, grads, passed)

    return compared(n, local, check_vma=False)


@wrong("a pmean-ed loss differentiated under check_vma=False", "a reduced loss", "own shard")
def _(n):
    def local(params, batch):
        return jax.value_and_grad(lambda p: pmean(mean_loss(p, batch)))(params)

    return compared(n, local, check_vma=False)


@wrong("a psum-ed loss differentiated under check_vma=False", "a reduced loss", "times")
def _(n):
    def local(params, batch):
        loss, grads = jax.value_and_grad(lambda p: psum(mean_loss(p, batch)))(params)
        return loss / n, grads

    return compared(n, local, check_vma=False)


@wrong("gradients summed in bfloat16", "bfloat16", "the reference in float32")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        narrow = pmean(each(lambda g: g.astype(jnp.bfloat16), grads))
        return pmean(loss), each(lambda g: g.astype(jnp.float32), narrow)

    return compared(n, local)


@wrong("a sum over examples where their mean belongs", "number of examples", "sum over examples")
def _(n):
    def local(params, batch):
        return pmean(own_gradients(params, batch, lambda p, b: example_losses(p, b).sum()))

    return compared(n, local)


@wrong("the batch replicated, then added up as if it were split", "every device sees the whole")
def _(n):
    def loss(params, batch):
        return example_losses(params, batch).sum() / EXAMPLES

    mesh = make_mesh(n)
    inner = jax.shard_map(
        lambda p, b: psum(own_gradients(p, jax.lax.pcast(b, "data", to="varying"), loss)),
        mesh=mesh,
        in_specs=(P(), P()),
        out_specs=(P(), P()),
    )

    @jax.jit
    def step(state, batch):
        value, grads = inner(state[0], batch)
        return apply(MOMENTUM, state, grads), {"loss": value}

    state, batch = put(mesh, host_state(MOMENTUM), host_batch())
    return {"step": step, "state": state, "batch": batch, "reference": one_device(MOMENTUM)}


CLIP = optax.clip_by_global_norm(0.05)


def clipped(grads):
    return CLIP.update(grads, optax.EmptyState())[0]


@jax.jit
def clipping_reference(state, batch):
    loss, grads = jax.value_and_grad(mean_loss)(state[0], batch)
    metrics = {"loss": loss, "gradient norm": optax.tree.norm(grads)}
    return apply(MOMENTUM, state, clipped(grads)), metrics


def clipping(n, local):
    mesh = make_mesh(n)
    inner = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P(), P(), P()))

    @jax.jit
    def step(state, batch):
        loss, grads, norm = inner(state[0], batch)
        return apply(MOMENTUM, state, grads), {"loss": loss, "gradient norm": norm}

    state, batch = put(mesh, host_state(MOMENTUM), host_batch())
    return {"step": step, "state": state, "batch": batch, "reference": clipping_reference}


@wrong("each shard's gradient clipped, then the mean", "clipped (or normalised) to a norm")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        return *pmean((loss, clipped(grads))), optax.tree.norm(pmean(grads))

    return clipping(n, local)


@wrong("clipping hides a sum, but the norm shows it", "Summed instead of averaged")
def _(n):
    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        return pmean(loss), clipped(psum(grads)), optax.tree.norm(psum(grads))

    return clipping(n, local)


def sharded_rows(n, order):
    """Each device keeps a part of the parameters, and updates it with the part `order` says."""
    mesh = make_mesh(n)
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(6 * n, 4)).astype(np.float32)
    batch = {"x": rng.normal(size=(EXAMPLES, 6 * n)).astype(np.float32), "y": host_batch()["y"]}

    def loss(weight, batch):
        logits = batch["x"] @ weight
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

    def local(own, batch):
        whole = jax.lax.all_gather(own, "data", tiled=True)
        value, grads = jax.value_and_grad(loss)(whole, batch)
        mine = jax.lax.psum_scatter(grads, "data", tiled=True) / n
        return own - 0.5 * order(mine), pmean(value)

    inner = jax.shard_map(
        local, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=(P("data"), P())
    )

    @jax.jit
    def reference(weight, batch):
        value, grads = jax.value_and_grad(loss)(weight, batch)
        return weight - 0.5 * grads, value

    weight, batch = jax.device_put((weight, batch), NamedSharding(mesh, P("data")))
    return {"step": jax.jit(inner), "state": weight, "batch": batch, "reference": reference}


@wrong("sharded parameters get their neighbour's gradient", "get each other's updates")
def _(n):
    ring = [(i, (i + 1) % n) for i in range(n)]
    return sharded_rows(n, lambda g: jax.lax.ppermute(g, "data", ring))


@wrong("params made with each device's own key", "before the first step")
def _(n):
    mesh = make_mesh(n)

    def init():
        key = jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("data"))
        return jax.random.normal(key, (6, 8))

    drawn = jax.jit(jax.shard_map(init, mesh=mesh, in_specs=(), out_specs=P(), check_vma=False))()
    (params, _), batch = put(mesh, host_state(MOMENTUM), host_batch())
    params = params | {"W": jax.block_until_ready(drawn)}
    state = params, jax.device_put(MOMENTUM.init(host_state(MOMENTUM)[0]), NamedSharding(mesh, P()))
    step = mapped(MOMENTUM, mesh, lambda p, b: pmean(own_gradients(p, b)))
    return {"step": step, "state": state, "batch": batch, "reference": one_device(MOMENTUM)}


@wrong("one device skips the update", "still holds its old value")
def _(n):
    mesh = make_mesh(n)

    def late(old, new):
        stale = jax.lax.axis_index("data") == n - 1
        return each(lambda o, m: jnp.where(stale, o, m), old, new)

    keep = jax.shard_map(late, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)

    @jax.jit
    def step(state, batch):
        (params, opt_state), metrics = one_device(MOMENTUM)(state, batch)
        return (keep(state[0], params), opt_state), metrics

    state, batch = put(mesh, host_state(MOMENTUM), host_batch())
    return {"step": step, "state": state, "batch": batch, "reference": one_device(MOMENTUM)}
