"""Solutions of lesson 07: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:07.1
# `all_gather` brings the rows of all devices, and `tiled=True` joins them into one stack. The inner map
# pairs one vector with all of the stack, the outer one does that for each of this device's vectors.


# %% exercise:07.1
def similarities(mine):
    """Dot products of this device's vectors (k, 3) with those of all n devices: (k, n * k)."""
    everyones = jax.lax.all_gather(mine, "data", tiled=True)
    one_with_all = jax.vmap(jnp.dot, in_axes=(None, 0))
    return jax.vmap(one_with_all, in_axes=(0, None))(mine, everyones)


exercise("07.1").check(similarities, devices=devices)

# %% [markdown] exercise:07.2
# The sum of exponentials runs over the classes of one image, and keeps its axis to be subtracted from
# that image's row. The targets pick one class of each row, so a sum over classes is an image's loss.


# %% exercise:07.2
def repaired_loss(logits, targets):
    """Mean cross-entropy of images: logits and one-hot targets, both (images, classes)."""
    log_probabilities = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    return -jnp.mean(jnp.sum(targets * log_probabilities, axis=-1))


exercise("07.2").check(repaired_loss)

# %% [markdown] exercise:07.3
# Under `jit` the batch is whole, so the mean over it is the mean of all devices. The old code added the 8
# gradients up, which is 8 times that mean: a rate of 0.08 in disguise. But its mean runs over ten classes,
# too, which makes every gradient ten times smaller, as in section 4: so its steps are the shorter ones.


# %% exercise:07.3
def recipe_step(params, batch, number):
    """One step of the older recipe on its whole batch: new parameters, and the loss."""

    def squared_error(params):
        images, targets = batch
        return jnp.mean((predict(params, images) - targets) ** 2)

    loss, grads = jax.value_and_grad(squared_error)(params)
    rate = 8 * 0.01 * 0.9 ** (number / 1000)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


given = {"params": first_params, "images": images, "targets": targets}
exercise("07.3").check(recipe_step, devices=devices, predict=predict, **given)
compare_with_section_5(recipe_step)

# %% [markdown] exercise:07.4
# Every copy is moved by the same averaged gradient, so the difference between two copies stays. What the
# devices report is averaged, too: one number, whatever their copies hold. And a sum over n devices is n means.

# %% exercise:07.4
copies_off = {"apart": 1 if n > 1 else 0, "losses": 1, "times the rate": n}

given = {"params": jax.device_put(stacked(first_params), split), "batch": stacked_batch}
given |= {"step": pmap_step, "loss_fn": cross_entropy, "devices": devices}
exercise("07.4").check(copies_off, rate=config.INIT_LR, **given)
