"""Whole steps, each with one fault: a mask, dropout, clipping, sums of each class, all at once."""

import jax
import jax.numpy as jnp
import optax
from equivalence_case import Case, cases
from equivalence_steps import (
    EXAMPLES,
    MOMENTUM,
    apply,
    each,
    example_losses,
    host_batch,
    host_state,
    make_mesh,
    pmean,
    psum,
    put,
)
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import example_keys, pad_batch

WHOLE: list[Case] = []
wrong = cases(WHOLE)

REAL = 33  # of 48 rows: the last two of 8 shards are nothing but padding
KEY = jax.random.key(11)
SHORT, LONG = 0.05, 5.0  # the gradients are longer than the one, and shorter than the other


def losses_of(params, batch, keys):
    """The loss of each example, with dropout where there are keys."""
    if keys is None:
        return example_losses(params, batch)
    kept = jax.vmap(lambda key: jax.random.bernoulli(key, 0.8, (6,)))(keys)
    return example_losses(params, batch | {"x": batch["x"] * kept / 0.8})


def class_sums(losses, weights, labels):
    """For each class the sum of its weighted losses, and the sum of its weights."""
    empty = jnp.zeros(4)
    return empty.at[labels].add(losses * weights), empty.at[labels].add(weights)


def clip(grads, longest):
    """The gradients, no longer than that, and the norm that they had."""
    norm = optax.tree.norm(grads)
    return each(lambda g: g * jnp.minimum(1, longest / norm), grads), norm


def metrics_of(loss, sums, norm):
    by_class = sums[0] / jnp.maximum(sums[1], 1)
    return {"loss": loss, "loss by class": by_class, "gradient norm": norm}


def script(longest):
    """The step for one device, which knows nothing of padding."""

    @jax.jit
    def step(state, batch, key=None):
        def mean(params):
            keys = None if key is None else example_keys(key, len(batch["y"]))
            losses = losses_of(params, batch, keys)
            return losses.mean(), losses

        (loss, losses), grads = jax.value_and_grad(mean, has_aux=True)(state[0])
        grads, norm = clip(grads, longest)
        sums = class_sums(losses, jnp.ones_like(losses), batch["y"])
        return apply(MOMENTUM, state, grads), metrics_of(loss, sums, norm)

    return step


def right(total, count, sums, grads, longest):
    """Sum, reduce, divide, then bend."""
    total, count, sums, grads = psum((total, count, sums, grads))
    loss, grads = each(lambda x: x / count, (total, grads))
    grads, norm = clip(grads, longest)
    return grads, metrics_of(loss, sums, norm)


def whole(
    n, finish=right, *, real=REAL, longest=SHORT, key=None, weights=lambda mask: (mask, mask)
):
    """Compare a step for padded batches; `finish` makes gradients and metrics of a shard's sums.

    `weights(mask)` are those of the class sums, and of the class counts.
    """
    mesh, rows = make_mesh(n), EXAMPLES

    def local(params, padded, key):
        batch, mask = padded
        params = jax.lax.pcast(params, "data", to="varying")

        def masked_sum(params):
            keys = None if key is None else example_keys(key, len(mask), "data")
            losses = losses_of(params, batch, keys)
            return (losses * mask).sum(), losses

        (total, losses), grads = jax.value_and_grad(masked_sum, has_aux=True)(params)
        sums = tuple(class_sums(losses, w, batch["y"])[i] for i, w in enumerate(weights(mask)))
        return finish(total, mask.sum(), sums, grads, longest)

    inner = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data"), P()), out_specs=P())

    @jax.jit
    def step(state, padded, key=None):
        grads, metrics = inner(state[0], padded, key)
        return apply(MOMENTUM, state, grads), metrics

    unpadded = host_batch(examples=real)
    state, batch = put(mesh, host_state(MOMENTUM), pad_batch(unpadded, rows))
    arguments = {"step": step, "state": state, "batch": batch, "key": key}
    return arguments | {"reference": script(longest), "reference_batches": [unpadded]}


def clipped_first(total, count, sums, grads, longest):
    """The sum over the examples is clipped, and then divided by their number."""
    total, count, sums, grads = psum((total, count, sums, grads))
    grads, norm = clip(grads, longest)
    loss, grads = each(lambda x: x / count, (total, grads))
    return grads, metrics_of(loss, sums, norm)


def without_norm(finish):
    """The same without the metric that shows the gradient's length, on both sides."""

    def finished(*arguments):
        grads, metrics = finish(*arguments)
        return grads, metrics | {"gradient norm": jnp.zeros(())}

    return finished


def local_means(total, count, sums, grads, longest):
    """The mean of the devices' means."""
    loss, grads = pmean(each(lambda x: x / jnp.maximum(count, 1), (total, grads)))
    grads, norm = clip(grads, longest)
    return grads, metrics_of(loss, psum(sums), norm)


def each_own_clip(total, count, sums, grads, longest):
    """Each device clips its own mean, then they are averaged."""
    loss, own = each(lambda x: x / count, (total, grads))
    return pmean(clip(own, longest)[0]), metrics_of(
        pmean(loss), psum(sums), optax.tree.norm(pmean(own))
    )


@wrong("a ragged sum clipped before it is divided", f"1/{REAL}", "clipped", "before it is divided")
def _(n):
    return whole(n, clipped_first)


@wrong(
    "a sum clipped before it is divided, with dropout", "1/48", "examples is clipped", "48 times"
)
def _(n):
    return whole(n, clipped_first, real=EXAMPLES, key=KEY)


@wrong("a sum clipped that would have been short enough", "is 48 times", "examples is clipped")
def _(n):
    return whole(n, clipped_first, real=EXAMPLES, longest=LONG, key=KEY)


@wrong("a sum clipped before it is divided, and no norm shown", "1/48", "clipped before")
def _(n):
    return whole(n, clipped_first, real=EXAMPLES, key=KEY) | {"check_metrics": False}


@wrong("a sum clipped, short enough, and no norm shown", "in its direction", "clipping")
def _(n):
    return whole(n, clipped_first, longest=LONG) | {"check_metrics": False}


@wrong("the devices' sum clipped before it is divided", "over the devices is clipped", "divided")
def _(n):
    def finish(total, count, sums, grads, longest):
        mean = each(lambda x: x / count, (total, grads))
        (loss, grads), sums = psum((mean, sums))
        grads, norm = clip(grads, longest)
        loss, grads = each(lambda x: x / n, (loss, grads))
        return grads, metrics_of(loss, sums, norm)

    return whole(n, finish, real=EXAMPLES)


@wrong("a mean of means over ragged shards, clipped", "mean of means over ragged shards")
def _(n):
    return whole(n, local_means)


@wrong("the same with dropout", "hardly the random numbers", "depends on them", "real examples")
def _(n):
    return whole(n, local_means, key=KEY)


@wrong("the same with dropout and no metrics", "once without random numbers")
def _(n):
    return whole(n, local_means, key=KEY) | {"check_metrics": False}


def all_rows(mask):
    return jnp.ones_like(mask), jnp.ones_like(mask)


@wrong("the mask forgotten in the class sums", "padding counts in metrics['loss by class']")
def _(n):
    return whole(n, weights=all_rows)


@wrong("the same with dropout, in the class sums", "padding counts in metrics['loss by class']")
def _(n):
    return whole(n, weights=all_rows, key=KEY)


@wrong("the mask forgotten in the class counts only", "state agrees", "sums and counts")
def _(n):
    return whole(n, weights=lambda mask: (mask, jnp.ones_like(mask)))
