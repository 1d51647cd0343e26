"""Examples that go to the wrong place, count too often, or not at all; and random keys."""

import jax
import jax.numpy as jnp
import numpy as np
from equivalence_case import Case, cases
from equivalence_steps import (
    EXAMPLES,
    MOMENTUM,
    apply,
    compared,
    example_losses,
    host_batch,
    host_params,
    host_state,
    make_mesh,
    masked_loss,
    own_gradients,
    pmean,
    put,
    right_local,
)
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import example_keys, pad_batch

BATCHES: list[Case] = []
wrong = cases(BATCHES)


@wrong("labels of the next shard", "batch['y'] and those of the rest meet the wrong part", "order")
def _(n):
    ring = [(i, (i + 1) % n) for i in range(n)]

    def local(params, batch):
        return right_local(params, batch | {"y": jax.lax.ppermute(batch["y"], "data", ring)})

    return compared(n, local)


@wrong(
    "labels replicated, and each device takes the first ones",
    "batch['y'] and those of the rest meet the wrong part",
)
def _(n):
    def local(params, batch):
        labels = jax.lax.all_gather(batch["y"], "data", tiled=True)
        return right_local(params, batch | {"y": labels[: len(batch["y"])]})

    return compared(n, local)


@wrong("two shards' labels swapped", "batch['y'] and those of the rest meet the wrong part")
def _(n):
    order = [(i, i) for i in range(n - 2)] + [(n - 2, n - 1), (n - 1, n - 2)]

    def local(params, batch):
        return right_local(params, batch | {"y": jax.lax.ppermute(batch["y"], "data", order)})

    return compared(n, local)


@wrong("each process shuffles by a seed of its own", "rows are missing", "shuffles that differ")
def _(n):
    whole, size = host_batch(), EXAMPLES // n
    orders = [np.random.default_rng(seed).permutation(EXAMPLES)[:size] for seed in range(n)]
    mixed = {name: value[np.concatenate(orders)] for name, value in whole.items()}
    return compared(n, right_local, batch=mixed, reference_batches=[whole])


@wrong("images and labels shuffled apart", "another order", "shuffles that differ")
def _(n):
    whole = host_batch() | {"id": np.arange(EXAMPLES)}
    order = np.random.default_rng(0).permutation(EXAMPLES)
    mixed = whole | {"id": whole["id"][order]}
    return compared(n, right_local, batch=mixed, reference_batches=[whole])


@wrong("shards that begin one row late", "rows are missing", "offsets of shards")
def _(n):
    whole, size = host_batch(), EXAMPLES // n
    rows = np.concatenate([np.arange(i * size, (i + 1) * size) + 1 for i in range(n)])
    late = {name: value[np.minimum(rows, EXAMPLES - 1)] for name, value in whole.items()}
    return compared(n, right_local, batch=late, reference_batches=[whole])


@wrong("the first batch again and again", "the one that batch 0", "closed over")
def _(n):
    arguments = compared(n, right_local)
    first, step = arguments["batch"], arguments["step"]
    _, second = put(make_mesh(n), None, host_batch(1))
    return arguments | {"step": lambda s, b: step(s, first), "more_batches": [second]}


REAL = 45  # of 48 rows, so that the last of 8 shards still has some
PADDED, MASK = pad_batch(host_batch(examples=REAL), EXAMPLES)
RAGGED = PADDED | {"mask": MASK}


@wrong("a mean of means over ragged shards", "mean of means over ragged shards", "real examples")
def _(n):
    local = lambda p, b: right_local(p, b, masked_loss)  # noqa: E731
    return compared(n, local, loss=masked_loss, batch=RAGGED)


@wrong("the same, against a script that knows no padding", "mean of means over ragged shards")
def _(n):
    local = lambda p, b: right_local(p, b, masked_loss)  # noqa: E731
    whole = host_batch(examples=REAL)
    return compared(n, local, batch=RAGGED, reference_batches=[whole])


@wrong("padding counts as examples do", "padding counts", "mask")
def _(n):
    return compared(n, right_local, loss=masked_loss, batch=RAGGED)


@wrong("real losses divided by all rows", "padding included", "45/48")
def _(n):
    def loss(params, batch):
        return (example_losses(params, batch) * batch["mask"]).mean()

    local = lambda p, b: right_local(p, b, loss)  # noqa: E731
    return compared(n, local, loss=masked_loss, batch=RAGGED)


def dropped(params, batch, keys):
    """Losses with dropout, each example's mask from its own key."""
    kept = jax.vmap(lambda key: jax.random.bernoulli(key, 0.5, (6,)))(keys)
    return example_losses(params, batch | {"x": batch["x"] * kept * 2}).mean()


@jax.jit
def with_dropout(state, batch, key):
    """The reference: one key for each example, by its place in the batch."""
    loss = lambda p: dropped(p, batch, example_keys(key, len(batch["y"])))  # noqa: E731
    value, grads = jax.value_and_grad(loss)(state[0])
    return apply(MOMENTUM, state, grads), {"loss": value}


def keyed(n, keys_of):
    """Compare a step whose shards draw from `keys_of(key, examples)`."""
    mesh = make_mesh(n)

    def local(params, batch, key):
        loss = lambda p, b: dropped(p, b, keys_of(key, len(b["y"])))  # noqa: E731
        return pmean(own_gradients(params, batch, loss))

    inner = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("data"), P()), out_specs=(P(), P()))

    @jax.jit
    def step(state, batch, key):
        value, grads = inner(state[0], batch, key)
        return apply(MOMENTUM, state, grads), {"loss": value}

    state, batch = put(mesh, host_state(MOMENTUM), host_batch())
    key = jax.random.key(7)
    return {"step": step, "state": state, "batch": batch, "reference": with_dropout, "key": key}


@wrong("the same dropout key on every device", "the same random key on every device")
def _(n):
    return keyed(n, example_keys)


@wrong("the key folded with the device's index", "axis_index", "example_keys")
def _(n):
    return keyed(
        n, lambda key, m: example_keys(jax.random.fold_in(key, jax.lax.axis_index("data")), m)
    )


@wrong("one of split(key, devices) for each device", "each device has a key of its own")
def _(n):
    def own(key, examples):
        return example_keys(jax.random.split(key, n)[jax.lax.axis_index("data")], examples)

    return keyed(n, own)


@wrong("keys numbered by device and place", "random numbers", "example_keys")
def _(n):
    def own(key, examples):
        numbers = 1000 * jax.lax.axis_index("data") + jnp.arange(examples)
        return jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)

    return keyed(n, own)


@wrong("the same key in every step", "random key of step 1", "the same key in every step")
def _(n):
    arguments = keyed(n, lambda key, m: example_keys(key, m, "data"))
    step, first = arguments["step"], jax.random.fold_in(arguments["key"], 1)
    return arguments | {"step": lambda state, batch, key: step(state, batch, first)}


@wrong("a key in the state that isn't advanced", "a random key that isn't advanced")
def _(n):
    mesh = make_mesh(n)

    def make(advance):
        @jax.jit
        def step(state, batch):
            params, key = state
            new, now = jax.random.split(key)
            grads = jax.grad(lambda p: dropped(p, batch, example_keys(now, EXAMPLES)))(params)
            moved = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
            return (moved, new if advance else key), None

        return step

    state, batch = put(mesh, (host_params(), jax.random.key(3)), host_batch())
    return {"step": make(False), "state": state, "batch": batch, "reference": make(True)}
