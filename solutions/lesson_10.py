"""Solutions of lesson 10: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:10.1
# Each layer has three products of the same size: forward, for its weights, for its input. The gradient of the
# first layer's input would be one of the images, which nobody trains, so that product isn't there.

# %% exercise:10.1
products = [2 * 1024 * k * n / 1e6 for k, n in [(784, 512), (512, 512), (512, 10)]]
work = {
    "forward, MFLOP": sum(products),
    "step, MFLOP": 3 * sum(products) - products[0],
}
work["least ms"] = work["step, MFLOP"] / 400  # MFLOP over GFLOP/s are ms
work["part"] = work["least ms"] / 20

exercise("10.1").check(work, sizes=[784, 512, 512, 10], batch=1024, gflops=400, ms=20)

# %% [markdown] exercise:10.2
# An epoch is what `scan` wants: a function of what is carried, the state, and of one row of what is walked
# through, a key. Within it stands the scan over steps. What the inner one gives out, the outer one stacks again.


# %% exercise:10.2
def train_epochs(update, state, key, count, batch_size, epochs):
    """All epochs, each in an order of its own: the last state, and the metrics of every step."""

    def epoch(state, key):
        return jax.lax.scan(update, state, shuffled_rows(key, count, batch_size))

    return jax.lax.scan(epoch, state, jax.random.split(key, epochs))


exercise("10.2").check(train_epochs)

# %% [markdown] exercise:10.3
# A straight line is halfway down when half of its time is over; a constant factor has then lost the square root of all
# that it loses. Smoothing takes a tenth from the true class and gives a tenth of that back. `softmax` gives the targets
# where two logits differ by the logarithm of their quotient. And in each step the average keeps 0.95 of what is older.

# %% exercise:10.3
predicted = {
    "linear, halfway": 0.5,
    "exponential, halfway": 0.01**0.5,
    "target of the true class": 1 - 0.1 + 0.1 / 10,
    "best lead": np.log(0.91 / 0.01),
    "share of the last twenty": 1 - 0.95**20,
    "also against trembling": "a falling rate",
}

exercise("10.3").check(
    predicted, make_schedule=make_schedule, steps=run_steps, smoothing=0.1, decay=0.95
)

# %% [markdown] exercise:10.4
# The choice sees the choice's keys and the validation curves, nothing else, and a run that never arrives takes forever.
# The report sees the other keys and the test accuracies. Nothing is in both.


# %% exercise:10.4
def report(runs, choice_keys, wanted):
    """The recipe that gets to `wanted` soonest, and what it can do, by keys with no part in that."""
    seconds = {}
    for run in runs:
        if run["key"] in choice_keys:
            reached = [at for at, accuracy in run["curve"] if accuracy >= wanted]
            seconds.setdefault(run["recipe"], []).append(min(reached, default=np.inf))
    chosen = min(seconds, key=lambda recipe: np.mean(seconds[recipe]))
    tests = [
        run["test"] for run in runs if run["recipe"] == chosen and run["key"] not in choice_keys
    ]
    return {"recipe": chosen, "mean": np.mean(tests), "spread": np.std(tests, ddof=1)}


exercise("10.4").check(report)
