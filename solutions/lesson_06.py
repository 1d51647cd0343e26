"""Solutions of lesson 06: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:06.1
# Weak scaling compares examples a second at the same batch per device, strong scaling the time at the same
# batch in all. A gain within the spread is none, and simulated devices have no clock.

# %% exercise:06.1
published = {
    "one": {"devices": 1, "batch": 512, "ms": 20.0, "spread": 0.02},
    "one, large batch": {"devices": 1, "batch": 2048, "ms": 72.0, "spread": 0.02},
    "many": {"devices": 4, "batch": 2048, "ms": 25.0, "spread": 0.03},
    "before": {"devices": 4, "batch": 4096, "ms": 46.0, "spread": 0.06},
    "tuned": {"devices": 4, "batch": 4096, "ms": 44.5, "spread": 0.05},
}
weak, strong = (2048 / 25.0) / (512 / 20.0), 72.0 / 25.0
judged = {"weak ratio": weak, "weak efficiency": weak / 4}
judged |= {"strong ratio": strong, "strong efficiency": strong / 4}
judged |= {"tuned": "no gain", "simulated": "no verdict"}

exercise("06.1").check(judged, runs=published)

# %% [markdown] exercise:06.2
# Rounding down gives the largest size that divides and surely fits where the larger one does. Only a lack of
# memory says something about the size; any other error is a fault, and hiding it would spoil the whole sweep.


# %% exercise:06.2
def robust_attempt(run, batch, devices):
    """The size that was run, the next below `batch` that divides, and its figures or a word."""
    size = batch - batch % devices
    if size == 0:
        return 0, f"skipped: {batch} examples for {devices} devices"
    try:
        return size, run(size)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return size, "failed: out of memory"


exercise("06.2").check(robust_attempt)

# %% [markdown] exercise:06.3
# The fit gets all runs but the one of this batch, so that its time has no say in the model. Divided by the
# measured time, the difference says by what part of the truth the model is off.


# %% exercise:06.3
def left_out_error(runs, batch):
    """Relative error, at this batch, of a model fitted to the runs of all the others."""
    model = fit([figures for size, figures in runs.items() if size != batch])
    return predict_ms(model, runs[batch]) / runs[batch]["ms"] - 1


exercise("06.3").check(left_out_error, runs=alone, fit=fit, predict_ms=predict_ms)

# %% [markdown] exercise:06.4
# All devices do the work of one, and then send. The knee is where the overhead is a tenth of the step, so the
# work is nine times the overhead. Below it the fixed cost decides, above it the rate.

# %% exercise:06.4
machine = {"overhead s": 0.002, "operations/s": 20e12, "bytes/s": 10e9}
workload = {"examples per device": 1024, "operations per example": 0.8e9, "bytes": 120e6}
work = 1024 * 0.8e9 / 20e12
one, many = 0.002 + work, 0.002 + work + 120e6 / 10e9
predicted = {"one device ms": 1000 * one, "many devices ms": 1000 * many}
predicted |= {"weak efficiency": one / many, "knee": 9 * 0.002 * 20e12 / 0.8e9}
predicted |= {"limits below the knee": "overhead", "limits above the knee": "rate"}

exercise("06.4").check(predicted, machine=machine, step=workload, devices=8)
