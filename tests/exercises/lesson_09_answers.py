"""Answers to the exercises of lesson 09."""

import numpy as np
from exercise_answers import Answers


def order(epoch, examples):
    return np.random.default_rng(epoch).permutation(examples)


def in_turns(step, examples, batch_size, process, count):
    batch = order(0, examples)[step * batch_size : (step + 1) * batch_size]
    return batch[process::count]


def own_seed(step, examples, batch_size, process, count):
    return np.random.default_rng([step, process]).permutation(examples)[: batch_size // count]


def own_share(step, examples, batch_size, process, count):
    share, size = np.arange(examples)[process::count], batch_size // count
    return share[order(0, len(share))][step * size : (step + 1) * size]


def own_batch(step, examples, batch_size, process, count):
    epoch, number = divmod(step * count + process, examples // batch_size)
    return order(epoch, examples)[number * batch_size : (number + 1) * batch_size]


def loader_answers() -> Answers:
    loaders = {f.__name__: f for f in (in_turns, own_seed, own_share, own_batch)}
    right = {"in_turns": "right", "own_seed": "repeats", "own_share": "count"}
    right |= {"own_batch": "size"}
    return Answers(
        right=right,
        wrong={
            "own_seed: two processes together": right | {"own_seed": "right"},
            "They are as many": right | {"own_share": "size"},
            "no example comes twice": right | {"in_turns": "repeats"},
            "but sorted": right | {"in_turns": "count"},
            "stands before it": right | {"own_seed": "count"},
        },
        context={"loaders": loaders},
    )


def process_answers() -> Answers:
    right = {"index": 1, "local_devices": 3, "devices": 6, "split": (12, 784)}
    right |= {"piece": (2, 784), "whole": (6, 784), "np.asarray(split)": "an error"}
    return Answers(
        right=right,
        wrong={
            "counted from 0": right | {"index": 2},
            "tells the processes apart": right | {"index": 0},
            "devices: that is the number of processes": right | {"devices": 2},
            "can feed itself": right | {"local_devices": 6},
            "those of all processes": right | {"devices": 3},
            "That is one process's part": right | {"split": (6, 784)},
            "only the rows are cut": right | {"split": (6, 1568)},
            "divide the rows of `split`": right | {"piece": (6, 784)},
            "not two parts of one": right | {"whole": (12, 784)},
            "what each process gave is all": right | {"whole": (1, 784)},
            "Nobody asked it": right | {"np.asarray(split)": "all rows"},
            "JAX doesn't do that": right | {"np.asarray(split)": "own rows"},
        },
        context={"processes": 2, "devices_per_process": 3, "rows": 6},
        secret=("(12", "(2,", "an error"),
    )


def seed_answers() -> Answers:
    right = dict.fromkeys(("shape", "loss", "one all-reduce", "copies"), "passes")
    right |= {"parameters": "notices"}
    return Answers(
        right=right,
        wrong={
            "Does a shape know": right | {"shape": "notices"},
            "Can a network learn": right | {"loss": "notices"},
            "another one for other images": right | {"one all-reduce": "notices"},
            "the same mean": right | {"copies": "notices"},
            "Half of each global batch": right | {"parameters": "passes"},
        },
    )


def failure_answers() -> Answers:
    right = {"goes on after": 30, "computed twice": 7, "seconds": 240}
    right |= {"parameters only": "other", "taking turns": 200}
    return Answers(
        right=right,
        wrong={
            "in no file yet": right | {"goes on after": 37},
            "begin anew": right | {"goes on after": 0},
            "Which is the last": right | {"goes on after": 15},
            "right before a checkpoint": right | {"computed twice": 15},
            "come after the last checkpoint": right | {"computed twice": 3},
            "the steps alone": right | {"seconds": 140},
            "Then the lost steps": right | {"seconds": 100},
            "look like milliseconds": right | {"seconds": 240_000},
            "First the survivors wait": right | {"seconds": 1000},
            "a momentum of zero": right | {"parameters only": "same"},
            "at the same time": right | {"taking turns": 100},
            "only one of them": right | {"taking turns": 400},
            "Each step waits": right | {"taking turns": 20},
        },
        context={
            "steps": 40,
            "every": 15,
            "died_after": 37,
            "step_seconds": 20,
            "heartbeat": 100,
            "waited": 0.7,
            "turns_ms": 201.0,
        },
        secret=(" 30", "240", "other'"),
    )


def answers() -> dict[str, Answers]:
    return {
        "09.1": loader_answers(),
        "09.2": process_answers(),
        "09.3": seed_answers(),
        "09.4": failure_answers(),
    }
