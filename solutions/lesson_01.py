"""Solutions of lesson 01: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:01.1
# `value_and_grad` gives the loss of the old parameters and their gradients in one pass, and
# `jax.tree.map` builds a new tree, so the caller's parameters stay what they were.


# %% exercise:01.1
def pure_step(loss_fn, params, batch, rate):
    """One step of gradient descent: the new parameters, and the loss of those handed in."""
    (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, grads), loss


exercise("01.1").check(pure_step, loss_fn=loss_and_accuracy, params=params, batch=batch)

# %% [markdown] exercise:01.2
# The momentum is built from committed parameters and is committed like them. A schedule counts
# steps, and its counter starts as a new number without a device: the jitted step returns it
# committed, so the second call is another one.

# %% exercise:01.2
steady = optax.sgd(0.1, momentum=0.9)
falling = optax.sgd(optax.exponential_decay(0.1, 100, decay_rate=0.9), momentum=0.9)
second_compile = {"steady": 1, "falling": 2, "uncommitted": "count"}

both = {"steady": steady, "falling": falling}
exercise("01.2").check(second_compile, optimizers=both, params=params, batch=batch)

# %% [markdown] exercise:01.3
# Each step reports the loss of the parameters that it was given, so one update less has gone into
# it than the number of the step says. Reading the row off the table does as well as this code.

# %% exercise:01.3
half_way = next((row["step"] for row in log if row["loss"] <= log[0]["loss"] / 2), None)
curve = {"step": half_way, "updates": half_way and half_way - 1}

exercise("01.3").check(curve, log=log)

# %% [markdown] exercise:01.4
# Examples divided by examples a second are seconds. The step is compiled once, before the first
# epoch, and an hour has 3600 seconds.

# %% exercise:01.4
EPOCHS, PRICE_PER_HOUR = 30, 0.80  # a price to calculate with, and nobody's offer
IMAGES = len(data.train_labels) // config.BATCH_SIZE * config.BATCH_SIZE
seconds = EPOCHS * IMAGES / throughput.examples_per_s + throughput.compile_s
bill = {"seconds": seconds, "price": seconds / 3600 * PRICE_PER_HOUR}

asked = {"images": IMAGES, "epochs": EPOCHS, "price_per_hour": PRICE_PER_HOUR}
exercise("01.4").check(bill, timing=throughput, **asked)
