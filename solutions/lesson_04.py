"""Solutions of lesson 04: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:04.1
# The gradient has the size of the parameters, which neither repetitions nor images change. Work is images
# times repetitions, so only those of one device count. And replicated parameters are whole everywhere.

# %% exercise:04.1
per_byte = {
    "twice the repetitions": "more",
    "twice the images per device": "more",
    "twice the devices, each with as many images": "same",
    "twice the devices, the same global batch": "less",
    "parameters on each device": "same",
}

size = {"width": config.WIDTH, "repeats": config.BLOCK_REPEATS, "rows": config.PER_DEVICE_BATCH}
exercise("04.1").check(per_byte, **size)

# %% [markdown] exercise:04.2
# The axis that stands where `data` stands is divided by the number of devices, here into pieces of six rows.
# The last device begins after all the others' rows. One row more divides by one device only.

# %% exercise:04.2
pieces = {
    "stack": (5, 6, 3),  # of (5, 6 * n, 3), P(None, "data")
    "labels": (6,),  # of (6 * n,), P("data")
    "weights": (3, 6 * n),  # of (3, 6 * n), P()
    "first row of the last": 6 * (n - 1),  # of the labels
    "one row more": "refused" if n > 1 else "accepted",  # 6 * n + 1 labels, P("data")
}

exercise("04.2").check(pieces, mesh=mesh, rows=6 * n)

# %% [markdown] exercise:04.3
# What twice the repetitions have added is what the loop contributes; three times add as much again. Divided
# by the repetitions that were added, it says how many all-reduces stand in the loop.

# %% exercise:04.3
once, twice = by_case["this run"], by_case["twice the repetitions"]
thrice = {
    "for each repetition": (twice.executions - once.executions) // config.BLOCK_REPEATS,
    "executed": 2 * twice.executions - once.executions,
    "bytes": 2 * twice.bytes - once.bytes,
}

asked = {"repeats": config.BLOCK_REPEATS}
exercise("04.3").check(thrice, count=lambda r: count_at(config.WIDTH, r, global_batch), **asked)

# %% [markdown] exercise:04.4
# With an axis of devices, the running sums are split as the rows are: each device adds to its own, and nothing
# has to be complete inside the loop. One mean over the devices follows, whatever the number of batches.


# %% exercise:04.4
def frugal(params, stack):
    """Mean gradient of a stack of batches, (batches, batch, ...), sent once."""

    def view(x):
        rows = x.reshape(len(x), n, -1, *x.shape[2:])
        return jax.lax.with_sharding_constraint(rows, NamedSharding(mesh, P(None, "data")))

    def add(sums, batch):
        each = jax.vmap(gradients, in_axes=(None, 0))(params, batch)
        return jax.tree.map(jnp.add, sums, each), None

    def nothing(p):
        return jax.lax.with_sharding_constraint(jnp.zeros((n, *p.shape)), split)

    sums, _ = jax.lax.scan(add, jax.tree.map(nothing, params), jax.tree.map(view, stack))
    return jax.tree.map(lambda g: g.mean(axis=0) / len(stack[0]), sums)


given = {"mesh": mesh, "loss_fn": loss_and_accuracy, "params": placed_params}
exercise("04.4").check(frugal, stack=(stacked_images, stacked_labels), **given)
