"""Solutions of lesson 05: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:05.1
# The axis whose entry is `data` is divided by the number of devices; `P()` names no axis, so
# nothing is cut. The positions 0 to n - 1 add up to n (n - 1) / 2.

# %% exercise:05.1
shards = {
    "rows": (4, 2 * n),  # P("data", None)
    "columns": (4 * n, 2),  # P(None, "data")
    "whole": (4 * n, 2 * n),  # P()
    "psum": n * (n - 1) / 2,
    "pmean": (n - 1) / 2,
}

exercise("05.1").check(shards, mesh=mesh, shape=(4 * n, 2 * n))

# %% [markdown] exercise:05.2
# A value is varying as soon as something varying goes into it, until a collective makes it the
# same everywhere. Differentiating with respect to an invariant value contains such a collective:
# the sum over its copies. With respect to a varying copy there is nothing to add up.

# %% exercise:05.2
kinds = {
    "w * x": "varying",
    "psum": "invariant",  # of w * x
    "gradient": "invariant",  # of (w * x).sum(), with respect to w
    "gradient of a copy": "varying",  # with respect to a copy of w that has been made varying
    "added up by": "grad",
}

exercise("05.2").check(kinds, mesh=mesh)

# %% [markdown] exercise:05.3
# The gradient with respect to a varying copy is the device's own, so `pmean` averages it, together
# with the loss, in one exchange after the backward pass. The update starts from the invariant
# parameters: a step from the copy would be varying, and couldn't be returned as the same everywhere.

# %% exercise:05.3
RATE = 0.1


def repaired_step(params, batch):
    """One step of gradient descent on one device's share: new parameters, and the loss."""
    own = jax.lax.pcast(params, "data", to="varying")
    (loss, _), grads = jax.value_and_grad(loss_and_accuracy, has_aux=True)(own, batch)
    loss, grads = jax.lax.pmean((loss, grads), "data")
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads), loss


given = {"mesh": mesh, "loss_fn": loss_and_accuracy, "params": params, "batch": batches[0]}
exercise("05.3").check(repaired_step, rate=RATE, **given)

# %% [markdown] exercise:05.4
# What the loop executes grows by one for each repetition that is added, and what stands outside
# stays. How many stand in the loop is what this machine's compiler has left there: the counts of
# section 4 show it, since one more repetition costs either one all-reduce more or none.

# %% exercise:05.4
in_the_loop = {name: counts[name].executions > config.BLOCK_REPEATS for name in counts}
doubled = {
    name: counts[name].executions + config.BLOCK_REPEATS * in_the_loop[name]
    for name in ("looks right", "varying first", "mean loss first")
}

given = {"mesh": mesh, "params": params, "batch": batches[0], "repeats": config.BLOCK_REPEATS}
exercise("05.4").check(doubled, make_loss=lambda r: make_loss(r, BLOCK_MIX), **given)
