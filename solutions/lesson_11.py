"""Solutions of lesson 11: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:11.1
# Every device needs the mean of all losses before it can measure a distance from it: the first
# reduction. The mean of the squared distances is the second, and the root bends, so it comes last.


# %% exercise:11.1
def spread(losses):
    """The standard deviation of the losses of all devices together."""
    mean = jax.lax.pmean(losses.mean(), "data")
    variance = jax.lax.pmean(((losses - mean) ** 2).mean(), "data")
    return jnp.sqrt(variance)


exercise("11.1").check(spread, mesh=mesh)

# %% [markdown] exercise:11.2
# Each device has the gradient of the mean over its share, and the shares are equally large, so the
# gradient of the whole batch is the mean of the devices' gradients. `psum` adds them up; `pmean` divides.


# %% exercise:11.2
def mended_gradients(params, batch, key):
    """Loss and gradients of all devices' examples."""
    kept = draw_on_mesh(key, len(batch[1]))
    varying = jax.lax.pcast(params, "data", to="varying")
    (loss, _), grads = jax.value_and_grad(mean_loss, has_aux=True)(varying, batch, kept)
    return jax.lax.pmean((loss, grads), "data")


exercise("11.2").check(mended_gradients, prove=prove_1)

# %% [markdown] exercise:11.3
# Each device contributes what adds up: the sum over its real examples, the gradient of that sum, and how
# many they are. The one division comes after the exchange, by the number of all real examples.


# %% exercise:11.3
def mended_mean(params, padded, key):
    """Loss and gradients over the real examples of all devices."""
    batch, mask = padded

    def sum_of_real(params):
        _, losses = mean_loss(params, batch)
        return (losses * mask).sum()

    varying = jax.lax.pcast(params, "data", to="varying")
    total, grads = jax.value_and_grad(sum_of_real)(varying)
    total, count, grads = jax.lax.psum((total, mask.sum(), grads), "data")
    return total / count, jax.tree.map(lambda g: g / count, grads)


exercise("11.3").check(mended_mean, prove=prove_2)

# %% [markdown] exercise:11.4
# A key for each image, by its place in the global batch: the name of the mesh axis lets `example_keys`
# begin to count where the device before has stopped. `jax.vmap` draws once for each key.


# %% exercise:11.4
def mended_pixels(key, shape):
    """Which pixels stay, for the images of this device's share: bool, `shape` (images, pixels)."""
    keys = example_keys(key, shape[0], "data")
    return jax.vmap(lambda key: jax.random.bernoulli(key, 0.9, shape[1:]))(keys)


exercise("11.4").check(mended_pixels, prove=prove_3, mesh=mesh)

# %% [markdown] exercise:11.5
# The seed is the epoch alone, so every process makes the same order without a word to the others, cuts the
# same batch out of it, and loads its own part of that.


# %% exercise:11.5
def mended_rows(epoch, number, process, count):
    """The rows that one process loads of global batch `number`: whole // count indices."""
    order = np.random.default_rng(epoch).permutation(len(train_labels))
    batch = order[number * config.BATCH_SIZE :][:whole]
    return batch.reshape(count, -1)[process]


exercise("11.5").check(mended_rows, prove=prove_4, count=n, batches=steps_per_epoch - 1)

# %% [markdown] exercise:11.6
# The line with the ramp already goes from once to `scale` times what stands before it, so what stands there
# must be the tuned rate itself. `peak` had been scaled before.


# %% exercise:11.6
def mended_rate(count, scale):
    """The learning rate of step `count`, from 0, for `scale` times the batch."""
    ramp = jnp.minimum(1, count / config.WARMUP)
    return TUNED_RATE * (1 + (scale - 1) * ramp)


agreed = {"tuned": TUNED_RATE, "warmup": config.WARMUP}
exercise("11.6").check(mended_rate, prove=prove_5, **agreed)
