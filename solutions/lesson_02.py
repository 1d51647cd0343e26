"""Solutions of lesson 02: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:02.1
# The step above 256 is 256 times eps. Below 1 it is half of eps, about 0.004, and a change of less than half of
# that is rounded away, a thousand times. bfloat16 has float32's range, float16 has not.

# %% exercise:02.1
small_changes = {
    "gap above 256": 256 * float(jnp.finfo(jnp.bfloat16).eps),
    "updated": 1.0,  # 1, after 1000 updates of -0.001
    "summed": 256,  # 1 + 1 + ... + 1, a thousand of them
    "1e30 is too large for": "float16",
}

exercise("02.1").check(small_changes)

# %% [markdown] exercise:02.2
# The dtype chooses the program, so it is static. The biases have to be cast with the weights: a float32 bias
# makes float32 activations, and the next product a float32 one. The logits go back to float32 for the loss.


# %% exercise:02.2
@functools.partial(jax.jit, static_argnames="compute_dtype")
def scores(params, images, compute_dtype):
    """Logits, float32 (n, classes); the layers compute in `compute_dtype`."""
    *hidden, last = jax.tree.map(lambda x: x.astype(compute_dtype), params)
    x = images.astype(compute_dtype)
    for layer in hidden:
        x = jax.nn.gelu(x @ layer["W"] + layer["b"])
    return (x @ last["W"] + last["b"]).astype(jnp.float32)


exercise("02.2").check(scores, params=params, images=batch[0])

# %% [markdown] exercise:02.3
# The cast at the entry of a layer rounds the gradient on its way back. The mean, the momentum and the update
# come after that, in float32, and have values between those that bfloat16 knows.

# %% exercise:02.3
fitting = {
    "dtype of a gradient": "float32",
    "one batch": "all fit",
    "mean of two batches": "some don't",
    "momentum": "some don't",  # of AdamW, after one update
    "new parameters": "some don't",
}

exercise("02.3").check(fitting, gradients=gradients, params=params, batches=batches)

# %% [markdown] exercise:02.4
# A: a clear gain. B: medians that differ by less than the repeats of one dtype. C: two batches that aren't alike.
# D: the first repeat has compiled. The ratio of this run is the one that the verdict above was drawn from.

# %% exercise:02.4
comparisons = {
    "A": {
        "float32": {"batch": 512, "ms": [41.0, 40.2, 40.8]},
        "bfloat16": {"batch": 512, "ms": [29.8, 30.1, 30.4]},
    },
    "B": {
        "float32": {"batch": 512, "ms": [10.1, 12.4, 11.0]},
        "bfloat16": {"batch": 512, "ms": [10.4, 9.3, 10.0]},
    },
    "C": {
        "float32": {"batch": 512, "ms": [20.1, 20.2, 20.0]},
        "bfloat16": {"batch": 256, "ms": [12.0, 12.1, 12.2]},
    },
    "D": {
        "float32": {"batch": 512, "ms": [8.1, 8.0, 8.2]},
        "bfloat16": {"batch": 512, "ms": [412.0, 6.1, 6.2]},
    },
}
judged = {"A": "faster", "B": "no difference", "C": "unfair", "D": "unfair"}
judged["here"] = timings["bfloat16"].examples_per_s / timings["float32"].examples_per_s

exercise("02.4").check(judged, comparisons=comparisons, timings=timings)
