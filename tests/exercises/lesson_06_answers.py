"""Answers to the exercises of lesson 06; they need no devices."""

import jax
import numpy as np
from exercise_answers import Answers

RUNS = {
    "one": {"devices": 1, "batch": 512, "ms": 20.0, "spread": 0.02},
    "one, large batch": {"devices": 1, "batch": 2048, "ms": 72.0, "spread": 0.02},
    "many": {"devices": 4, "batch": 2048, "ms": 25.0, "spread": 0.03},
    "before": {"devices": 4, "batch": 4096, "ms": 46.0, "spread": 0.06},
    "tuned": {"devices": 4, "batch": 4096, "ms": 44.5, "spread": 0.05},
}
ALONE = {16: {"batch": 16, "ms": 1.5}, 32: {"batch": 32, "ms": 2.0}, 64: {"batch": 64, "ms": 4.2}}


def fit(runs):
    return np.polyfit([f["batch"] for f in runs], [f["ms"] for f in runs], 1)


def predict_ms(model, figures):
    return float(np.polyval(model, figures["batch"]))


def robust(run, batch, devices):
    size = batch - batch % devices
    if size == 0:
        return 0, "skipped: too few"
    try:
        return size, run(size)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return size, "failed: out of memory"


def stubborn(run, batch, devices):
    return robust(run, batch, 1)


def rounds_up(run, batch, devices):
    return robust(run, -(-batch // devices) * devices, devices)


def skips(run, batch, devices):
    return (batch, "skipped") if batch % devices else robust(run, batch, devices)


def claims_the_asked(run, batch, devices):
    return batch, robust(run, batch, devices)[1]


def runs_nothing_at_all(run, batch, devices):
    size = batch - batch % devices
    return size, run(size)


def ends_the_sweep(run, batch, devices):
    size = batch - batch % devices
    return (size, run(size)) if size else (0, "skipped")


def swallows_all(run, batch, devices):
    try:
        return robust(run, batch, devices)
    except Exception:
        return batch, "failed"


def swallows_devices(run, batch, devices):
    try:
        return robust(run, batch, devices)
    except jax.errors.JaxRuntimeError:
        return batch, "failed"


def only_figures(run, batch, devices):
    return robust(run, batch, devices)[1]


def without(runs, batch):
    model = fit([f for size, f in runs.items() if size != batch])
    return predict_ms(model, runs[batch])


def error(runs, batch):
    return without(runs, batch) / runs[batch]["ms"] - 1


def leaks(runs, batch):
    return predict_ms(fit(list(runs.values())), runs[batch]) / runs[batch]["ms"] - 1


def nothing(runs, batch):
    error(runs, batch)


def mistyped(runs, batch):
    return without(runs, batch) / runs[batch]["msec"] - 1


def claim_answers() -> Answers:
    right = {"weak ratio": 3.2, "weak efficiency": 0.8, "strong ratio": 2.88}
    right |= {"strong efficiency": 0.72, "tuned": "no gain", "simulated": "no verdict"}
    swapped = {"weak ratio": 2.88, "weak efficiency": 0.72}
    swapped |= {"strong ratio": 3.2, "strong efficiency": 0.8}
    return Answers(
        right=right,
        wrong={
            "wrong way round": right | swapped,
            "weak ratio is upside down": right | {"weak ratio": 1 / 3.2},
            "strong ratio is upside down": right | {"strong ratio": 1 / 2.88},
            "compare examples a second": right | {"weak ratio": 0.8},
            "strong ratio: which two runs": right | {"strong ratio": 0.8},
            "not in percent": right | {"weak efficiency": 80},
            "strong efficiency: the ratio": right | {"strong efficiency": 2.88},
            "with their spread": right | {"tuned": "gain"},
            "share the cores": right | {"simulated": "gain"},
        },
        context={"runs": RUNS},
        secret=("3.2", "2.88", "0.72"),
    )


def sweep_answers() -> Answers:
    return Answers(
        right=robust,
        wrong={
            "still don't divide": stubborn,
            "Round down": rounds_up,
            "can be made to": skips,
            "Return the size that was run": claims_the_asked,
            "nothing to run": runs_nothing_at_all,
            "has ended the sweep": ends_the_sweep,
            "misspelt name": swallows_all,
            "a device that failed": swallows_devices,
            "Return two things": only_figures,
        },
        secret=("batch - batch %",),
    )


def fit_answers() -> Answers:
    def ms(runs, batch):
        return runs[batch]["ms"]

    return Answers(
        right=error,
        wrong={
            "has seen the size": leaks,
            "difference in ms": lambda r, b: without(r, b) - ms(r, b),
            "is 0 where": lambda r, b: without(r, b) / ms(r, b),
            "sign is the other way": lambda r, b: -error(r, b),
            "is the yardstick": lambda r, b: ms(r, b) / without(r, b) - 1,
            "not in percent": lambda r, b: 100 * error(r, b),
            "a model without it": lambda r, b: 0.0,
            "returns nothing": nothing,
        },
        context={"runs": ALONE, "fit": fit, "predict_ms": predict_ms},
        raises={'["msec"]': mistyped},
    )


def prediction_answers() -> Answers:
    # 40.96 ms of work, 2 ms of overhead, 12 ms to send
    right = {"one device ms": 42.96, "many devices ms": 54.96, "weak efficiency": 42.96 / 54.96}
    right |= {"knee": 450, "limits below the knee": "overhead", "limits above the knee": "rate"}
    return Answers(
        right=right,
        wrong={
            "give milliseconds": right | {"one device ms": 0.04296},
            "nobody to send": right | {"one device ms": 54.96},
            "The work alone": right | {"one device ms": 40.96},
            "add its fixed cost": right | {"one device ms": 38.96},
            "nobody's work is shared": right | {"many devices ms": 19.12},
            "a third term": right | {"many devices ms": 42.96},
            "to send the bytes": right | {"many devices ms": 52.96},
            "as a part of 1": right | {"weak efficiency": 78.2},
            "upside down": right | {"weak efficiency": 1.279},
            "divide by it twice": right | {"weak efficiency": 0.0977},
            "part of the gain": right | {"weak efficiency": 0.5},
            "half of the best": right | {"knee": 50},
            "not of the work": right | {"knee": 500},
            "part of the step is overhead": right | {"knee": 100},
            "whatever its batch": right | {"limits below the knee": "rate"},
            "on one device. Which": right | {"limits above the knee": "link"},
        },
        context={
            "machine": {"overhead s": 0.002, "operations/s": 20e12, "bytes/s": 10e9},
            "step": {"examples per device": 1024, "operations per example": 0.8e9, "bytes": 120e6},
            "devices": 8,
        },
        secret=("42.96", "54.96", "450"),
    )


def answers() -> dict[str, Answers]:
    return {
        "06.1": claim_answers(),
        "06.2": sweep_answers(),
        "06.3": fit_answers(),
        "06.4": prediction_answers(),
    }
