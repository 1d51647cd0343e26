"""Answers to the exercises of lesson 10."""

import statistics
from math import inf, log

import jax
import jax.numpy as jnp
from exercise_answers import Answers

from course_utils.models.fused_epoch import shuffled_rows
from course_utils.models.recipe import make_schedule


def work_answers() -> Answers:
    forward, first = 2 * 8 * (20 * 10 + 10 * 5) / 1e6, 2 * 8 * 20 * 10 / 1e6
    step = 3 * forward - first
    right = {"forward, MFLOP": forward, "step, MFLOP": step, "least ms": step / 2}
    right |= {"part": step / 2 / 0.02}
    return Answers(
        right=right,
        wrong={
            "two operations": right | {"forward, MFLOP": forward / 2},
            "that is one image": right | {"forward, MFLOP": forward / 8},
            "in millions": right | {"forward, MFLOP": forward * 1e6},
            "one product for each layer": right | {"forward, MFLOP": 17},
            "it goes backward, too": right | {"step, MFLOP": forward},
            "more to answer": right | {"step, MFLOP": 2 * forward},
            "a result that nobody reads": right | {"step, MFLOP": 3 * forward},
            "add up the products": right | {"step, MFLOP": 17},
            "that is in seconds": right | {"least ms": step / 2 / 1000},
            "of the whole step": right | {"least ms": forward / 2},
            "a part is below 1": right | {"part": 1 / right["part"]},
            "what could be saved": right | {"part": 1 - right["part"]},
            "as a part of 1": right | {"part": 100 * right["part"]},
            "over the measured one": right | {"part": 0.9},
        },
        context={"sizes": [20, 10, 5], "batch": 8, "gflops": 2, "ms": 0.02},
        secret=("images, which", "input of the first"),
    )


def train(update, state, key, count, batch_size, epochs):
    def epoch(state, key):
        return jax.lax.scan(update, state, shuffled_rows(key, count, batch_size))

    return jax.lax.scan(epoch, state, jax.random.split(key, epochs))


def in_python(update, state, key, count, batch_size, epochs):
    metrics = []
    for own_key in jax.random.split(key, epochs):
        state, of_epoch = jax.lax.scan(update, state, shuffled_rows(own_key, count, batch_size))
        metrics.append(of_epoch["rows"])
    return state, {"rows": jnp.stack(metrics)}


def one_order(update, state, key, count, batch_size, epochs):
    def epoch(state, _):
        return jax.lax.scan(update, state, shuffled_rows(key, count, batch_size))

    return jax.lax.scan(epoch, state, jnp.arange(epochs))


def own_keys(update, state, key, count, batch_size, epochs):
    return train(update, state, jax.random.key(5), count, batch_size, epochs)


def drawn_again_and_again(update, state, key, count, batch_size, epochs):
    def epoch(state, key):
        shape = (count // batch_size, batch_size)
        return jax.lax.scan(update, state, jax.random.randint(key, shape, 0, count))

    return jax.lax.scan(epoch, state, jax.random.split(key, epochs))


def from_the_start(update, state, key, count, batch_size, epochs):
    def epoch(_, key):
        return jax.lax.scan(update, state, shuffled_rows(key, count, batch_size))

    return jax.lax.scan(epoch, state, jax.random.split(key, epochs))


def first_epoch_returned(update, state, key, count, batch_size, epochs):
    _, metrics = train(update, state, key, count, batch_size, epochs)
    first, _ = jax.lax.scan(update, state, metrics["rows"][0])
    return first, metrics


def one_more_step(update, state, key, count, batch_size, epochs):
    after, metrics = train(update, state, key, count, batch_size, epochs)
    return update(after, metrics["rows"][0, 0])[0], metrics


def one_epoch(update, state, key, count, batch_size, epochs):
    return jax.lax.scan(update, state, shuffled_rows(key, count, batch_size))


def only_the_state(update, state, key, count, batch_size, epochs):
    return train(update, state, key, count, batch_size, epochs)[0]


def no_metrics(update, state, key, count, batch_size, epochs):
    return train(update, state, key, count, batch_size, epochs)[0], None


def no_updates(update, state, key, count, batch_size, epochs):
    return state, {"rows": shuffled_rows(key, count, batch_size)}


def returns_nothing(update, state, key, count, batch_size, epochs):
    train(update, state, key, count, batch_size, epochs)


def misspelt(update, state, key, count, batch_size, epochs):
    return jax.lax.skan(update, state, key)


def epochs_answers() -> Answers:
    return Answers(
        right=train,
        wrong={
            "A Python loop is written out": in_python,
            "the same order": one_order,
            "it isn't used": own_keys,
            "comes twice": drawn_again_and_again,
            "starts from where the first did": from_the_start,
            "Only the first epoch": first_epoch_returned,
            "end in another state": one_more_step,
            "as their first two axes": one_epoch,
            "Return two things": only_the_state,
            "gives out, stacked": no_metrics,
            "was never called": no_updates,
            "returns nothing": returns_nothing,
        },
        secret=("lax.scan(epoch", "lax.scan(update"),
        raises={"skan": misspelt},
    )


def parts_answers() -> Answers:
    right = {
        "linear, halfway": 0.5,
        "exponential, halfway": 0.1,
        "target of the true class": 0.91,
        "best lead": log(91),
        "share of the last twenty": 1 - 0.95**20,
        "also against trembling": "a falling rate",
    }
    return Answers(
        right=right,
        wrong={
            "Linear: in a straight line": right | {"linear, halfway": 0.1},
            "Exponential: that would be a straight line": right | {"exponential, halfway": 0.5},
            "the end of the way": right | {"exponential, halfway": 0.01},
            "its factor times itself": right | {"exponential, halfway": 0.25},
            "shared by all ten classes": right | {"target of the true class": 0.9},
            "by the smoothing's share": right | {"target of the true class": 1},
            "so there is one": right | {"best lead": None},
            "difference of two logits": right | {"best lead": 10},
            "they still count": right | {"share of the last twenty": 1},
            "all the older ones": right | {"share of the last twenty": 0.95**20},
            "the last step alone": right | {"share of the last twenty": 0.05},
            "begin with what": right | {"share of the last twenty": 0.95},
            "makes each pull smaller": right | {"also against trembling": "momentum"},
        },
        context={"make_schedule": make_schedule, "steps": 630, "smoothing": 0.1, "decay": 0.95},
        secret=("0.91", "4.5", "0.64"),
    )


def seconds_of(runs, wanted, recipe, never=inf):
    """Seconds to `wanted` of each run of a recipe."""
    mine = [run for run in runs if run["recipe"] == recipe]
    reached = [[at for at, accuracy in run["curve"] if accuracy >= wanted] for run in mine]
    return [min(times, default=never) for times in reached]


def with_faults(choose=None, tests=None, mean=statistics.fmean, spread=statistics.stdev):
    """A report that is right, but for the parts that are given."""

    def report(runs, choice_keys, wanted):
        def mean_seconds(recipe):
            seen = [run for run in runs if run["key"] in choice_keys]
            return statistics.fmean(seconds_of(seen, wanted, recipe))

        recipes = sorted({run["recipe"] for run in runs})
        by = (lambda recipe: choose(runs, choice_keys, wanted, recipe)) if choose else mean_seconds
        chosen = min(recipes, key=by)
        mine = [run for run in runs if run["recipe"] == chosen]
        reported = [run["test"] for run in mine if run["key"] not in choice_keys]
        values = tests(mine, choice_keys) if tests else reported
        return {"recipe": chosen, "mean": mean(values), "spread": spread(reported)}

    return report


def luckiest(runs, choice_keys, wanted, recipe):
    return min(seconds_of([r for r in runs if r["key"] in choice_keys], wanted, recipe))


def by_all_keys(runs, choice_keys, wanted, recipe):
    return statistics.fmean(seconds_of(runs, wanted, recipe))


def never_left_out(runs, choice_keys, wanted, recipe):
    seconds = seconds_of([r for r in runs if r["key"] in choice_keys], wanted, recipe)
    return statistics.fmean(s for s in seconds if s < inf)


def by_test(runs, choice_keys, wanted, recipe):
    return -statistics.fmean(run["test"] for run in runs if run["recipe"] == recipe)


def by_the_end(runs, choice_keys, wanted, recipe):
    return -statistics.fmean(run["curve"][-1][1] for run in runs if run["recipe"] == recipe)


def validation(mine, choice_keys):
    return [run["curve"][-1][1] for run in mine if run["key"] not in choice_keys]


def of_all_keys(mine, choice_keys):
    return [run["test"] for run in mine]


def of_the_choice(mine, choice_keys):
    return [run["test"] for run in mine if run["key"] in choice_keys]


def spread_of_all(runs, choice_keys, wanted):
    right = with_faults()(runs, choice_keys, wanted)
    tests = [run["test"] for run in runs if run["recipe"] == right["recipe"]]
    return right | {"spread": statistics.stdev(tests)}


def gives_nothing(runs, choice_keys, wanted):
    with_faults()(runs, choice_keys, wanted)


def no_spread(runs, choice_keys, wanted):
    return {"recipe": "A", "mean": 0.9}


def no_such_recipe(runs, choice_keys, wanted):
    return {"recipe": "best", "mean": 0.9, "spread": 0.0}


def wrong_field(runs, choice_keys, wanted):
    return {"recipe": runs[0]["name"]}


def report_answers() -> Answers:
    return Answers(
        right=with_faults(),
        wrong={
            "its luckiest key": with_faults(choose=luckiest),
            "to have no part in it": with_faults(choose=by_all_keys),
            "doesn't get there": with_faults(choose=never_left_out),
            "by its test accuracy": with_faults(choose=by_test),
            "accuracy at its end": with_faults(choose=by_the_end),
            "over all keys, those of the choice": with_faults(tests=of_all_keys),
            "over the keys of the choice": with_faults(tests=of_the_choice),
            "the best of several": with_faults(mean=max),
            "a validation accuracy": with_faults(tests=validation),
            "isn't that of the test accuracies": with_faults(mean=min),
            "The spread is too small": with_faults(spread=statistics.pstdev),
            "From the lowest to the highest": with_faults(spread=lambda v: max(v) - min(v)),
            "The spread is over all keys": spread_of_all,
            "isn't that of the keys reported": with_faults(spread=statistics.variance),
            "returns nothing": gives_nothing,
            "lacks 'spread'": no_spread,
            "none of the recipes": no_such_recipe,
        },
        secret=("not in choice_keys", "ddof"),
        raises={'runs[0]["name"]': wrong_field},
    )


def answers() -> dict[str, Answers]:
    return {
        "10.1": work_answers(),
        "10.2": epochs_answers(),
        "10.3": parts_answers(),
        "10.4": report_answers(),
    }
