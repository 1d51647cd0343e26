"""Answers to the exercises of lesson 07."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from exercise_answers import Answers
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.models.mlp import init_params, predict

DEVICES = jax.devices()
N = len(DEVICES)


def table_of(gather, second_in_axes=(None, 0), out_axes=0):
    """A wrong or right answer to 07.1 from the way to bring the rows and the axes to map over."""

    def answer(mine):
        one_with_all = jax.vmap(jnp.dot, in_axes=second_in_axes)
        return jax.vmap(one_with_all, in_axes=(0, None), out_axes=out_axes)(mine, gather(mine))

    return answer


def tiled(mine):
    return jax.lax.all_gather(mine, "data", tiled=True)


def by_ring(mine):
    """All rows, but every device sees its own first."""
    ring = [(i, (i + 1) % N) for i in range(N)]
    rows = [mine]
    for _ in range(N - 1):
        rows.append(jax.lax.ppermute(rows[-1], "data", ring))
    return jnp.concatenate(rows)


def with_the_axis_left(mine):
    return jnp.einsum("ik,ejk->iej", mine, jax.lax.all_gather(mine, "data"))


def pair_by_pair(mine):
    return jnp.einsum("ik,eik->ie", mine, jax.lax.all_gather(mine, "data"))


def of_another_axis(mine):
    return mine @ jax.lax.all_gather(mine, "batch", tiled=True).T


def similarity_answers() -> Answers:
    return Answers(
        right=table_of(tiled),
        wrong={
            "Where are the others'": table_of(lambda mine: mine),
            "Adding vectors up": table_of(lambda mine: jax.lax.psum(mine, "data")),
            "added is still there": with_the_axis_left,
            "the wrong way round": table_of(tiled, out_axes=1),
            "pair by pair": pair_by_pair,
            "a device's table has": lambda mine: tiled(mine) @ tiled(mine).T,
            "the order of the columns": table_of(by_ring),
            "the numbers aren't": lambda mine: 2 * mine @ tiled(mine).T,
            "returns nothing": lambda mine: None,
        },
        context={"devices": DEVICES},
        secret=("all_gather", "tiled", "in_axes=("),
        raises={'jax.lax.all_gather(mine, "batch", tiled=True)': of_another_axis},
    )


def published(logits, targets):
    return -jnp.mean(targets * (logits - jax.nn.logsumexp(logits)))


def right_loss(logits, targets):
    log_probabilities = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    return -jnp.mean(jnp.sum(targets * log_probabilities, axis=-1))


def without_keepdims(logits, targets):
    return -jnp.mean(jnp.sum(targets * (logits - jax.nn.logsumexp(logits, axis=-1)), axis=-1))


def over_the_batch(logits, targets):
    return -jnp.mean(jnp.sum(targets * (logits - jax.nn.logsumexp(logits)), axis=-1))


def over_images(logits, targets):
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits, axis=0), axis=-1))


def by_probabilities(logits, targets):
    return -jnp.mean(jnp.sum(targets * jnp.log(jax.nn.softmax(logits)), axis=-1))


def loss_answers() -> Answers:
    return Answers(
        right=right_loss,
        wrong={
            "both mistakes are still": published,
            "The second mistake is still": lambda x, y: -jnp.mean(y * jax.nn.log_softmax(x)),
            "The first mistake is still": over_the_batch,
            "one loss for each image": optax.softmax_cross_entropy,
            "isn't a single number": lambda x, y: y * jax.nn.log_softmax(x),
            "a sum over images": lambda x, y: -jnp.sum(y * jax.nn.log_softmax(x)),
            "The sign is wrong": lambda x, y: -right_loss(x, y),
            "It is the other axis": over_images,
            "For large ones it isn't finite": by_probabilities,
            "its slope isn't": lambda x, y: jax.lax.stop_gradient(right_loss(x, y)),
            "isn't the mean cross-entropy": lambda x, y: jnp.mean((jax.nn.softmax(x) - y) ** 2),
            "returns nothing": lambda x, y: None,
        },
        secret=("keepdims", "axis=-1", "log_softmax", "optax"),
        raises={"targets * (logits - jax.nn.logsumexp(logits, axis=-1))": without_keepdims},
    )


def squared_error(params, batch):
    return jnp.mean((predict(params, batch[0]) - batch[1]) ** 2)


def summed_over_classes(params, batch):
    return jnp.mean(jnp.sum((predict(params, batch[0]) - batch[1]) ** 2, axis=-1))


def cross_entropy(params, batch):
    return optax.softmax_cross_entropy(predict(params, batch[0]), batch[1]).mean()


def of_probabilities(params, batch):
    return jnp.mean((jax.nn.softmax(predict(params, batch[0])) - batch[1]) ** 2)


def recipe(loss_fn=squared_error, times=8, decay=lambda number: 0.9 ** (number / 1000)):
    """An answer to 07.3 from its loss, its factor, and how its rate falls."""

    def step(params, batch, number):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch)
        rate = times * 0.01 * decay(number)
        return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss

    return step


def still_with_psum(params, batch, number):
    loss, grads = jax.value_and_grad(squared_error)(params, batch)
    grads = jax.lax.psum(grads, "batch")
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


def first_share_only(params, batch, number):
    return recipe()(params, jax.tree.map(lambda x: x[:32], batch), number)


def recipe_answers() -> Answers:
    random = np.random.default_rng(0)
    images = random.random((2, 256, 784), np.float32)
    labels = random.integers(0, 10, (2, 256))
    right = recipe()
    return Answers(
        right=right,
        wrong={
            "what did `psum` take": recipe(times=1),
            "You took the number of devices here": recipe(times=2),
            "that factor is in it twice": recipe(times=64),
            "images *and* classes": recipe(summed_over_classes),
            "isn't divided by the classes here": recipe(summed_over_classes, times=1),
            "the length of the first step": recipe(times=3),
            "of the cross-entropy": recipe(cross_entropy),
            "without a softmax": recipe(of_probabilities),
            "of all 256 images": first_share_only,
            "up the gradient": recipe(times=-8),
            "nothing was learnt": recipe(times=0),
            "the rate never falls": recipe(decay=lambda number: 1.0),
            "not in each": recipe(decay=lambda number: 0.9**number),
            "falls in stairs": recipe(decay=lambda number: 0.9 ** (number // 1000)),
            "Later the rate isn't": recipe(decay=lambda number: 0.95 ** (number / 1000)),
            "The loss isn't": lambda p, b, i: (right(p, b, i)[0], 8 * squared_error(p, b)),
            "Return two things": lambda p, b, i: right(p, b, i)[0],
            "hasn't the tree": lambda p, b, i: right(p, b, i)[::-1],
            "returns nothing": lambda p, b, i: None,
        },
        context={
            "devices": DEVICES[:2],
            "predict": predict,
            "params": init_params(jax.random.key(1), [784, 16, 10]),
            "images": images,
            "targets": np.eye(10, dtype=np.float32)[labels],
        },
        secret=("0.08", "8 * ", "times 8"),
        raises={'jax.lax.psum(grads, "batch")': still_with_psum},
    )


@functools.partial(jax.pmap, axis_name="data", in_axes=(0, 0, None), devices=DEVICES)
def pmap_step(params, batch, rate):
    loss, grads = jax.lax.pmean(jax.value_and_grad(cross_entropy)(params, batch), "data")
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


def copies_answers() -> Answers:
    random = np.random.default_rng(0)
    images = random.random((N, 4, 20), np.float32)
    targets = np.eye(10, dtype=np.float32)[random.integers(0, 10, (N, 4))]
    params = init_params(jax.random.key(1), [20, 6, 10])
    split = NamedSharding(jax.make_mesh((N,), ("data",), (AxisType.Auto,)), P("data"))
    copies = jax.tree.map(lambda x: jnp.broadcast_to(x, (N, *x.shape)), params)
    right = {"apart": 1, "losses": 1, "times the rate": N}
    return Answers(
        right=right,
        wrong={
            "send the right parameters around": right | {"apart": 0},
            "each device's own copy": right | {"apart": 1 / N},
            "move differently": right | {"apart": 10},
            "becomes of their difference": right | {"apart": 0.5},
            "which one does it return": right | {"losses": N},
            "can a `pmean` give": right | {"losses": 2},
            "larger or smaller than the mean": right | {"times the rate": 1 / N},
            "sum and mean would be the same": right | {"times the rate": 1},
            "How many times the mean": right | {"times the rate": N**2},
        },
        context={
            "step": pmap_step,
            "loss_fn": cross_entropy,
            "devices": DEVICES,
            "params": jax.device_put(copies, split),
            "batch": (images, targets),
            "rate": 0.1,
        },
    )


def answers() -> dict[str, Answers]:
    return {
        "07.1": similarity_answers(),
        "07.2": loss_answers(),
        "07.3": recipe_answers(),
        "07.4": copies_answers(),
    }
