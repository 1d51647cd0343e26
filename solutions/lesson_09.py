"""Solutions of lesson 09: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:09.1
# Dealing a batch out like cards gives other rows to each process, but the batch is the same. Seeds of one's
# own draw independently, so that rows meet; shares of the data set never mix, and depend on their number.

# %% exercise:09.1
verdicts = {
    "in_turns": "right",
    "own_seed": "repeats",
    "own_share": "count",
    "own_batch": "size",
}

loaders = {f.__name__: f for f in (in_turns, own_seed, own_share, own_batch)}
exercise("09.1").check(verdicts, loaders=loaders)

# %% [markdown] exercise:09.2
# With `P("data", None)` the parts stand one below the other and are cut into as many pieces as there are
# devices; with `P()` each part is the whole. Rows in the other process are out of NumPy's reach.

# %% exercise:09.2
second_process = {"index": 1, "local_devices": 3, "devices": 6}
second_process |= {"split": (12, 784), "piece": (2, 784), "whole": (6, 784)}
second_process |= {"np.asarray(split)": "an error"}

exercise("09.2").check(second_process, processes=2, devices_per_process=3, rows=6)

# %% [markdown] exercise:09.3
# Shapes, collectives and copies say that the processes work together, and a falling loss that something is
# learnt. Which examples were learnt from shows only in comparison with a run that has the right ones.

# %% exercise:09.3
another_seed = {"shape": "passes", "loss": "passes", "one all-reduce": "passes"}
another_seed |= {"copies": "passes", "parameters": "notices"}

exercise("09.3").check(another_seed)

# %% [markdown] exercise:09.4
# Step 30 is the last multiple of 15 before 37, so seven steps are computed twice, after about one timeout of
# waiting. Without its momentum the run goes another way. And in each step somebody sleeps 200 ms.

# %% exercise:09.4
failure_costs = {"goes on after": 30, "computed twice": 7, "seconds": 100 + 7 * 20}
failure_costs |= {"parameters only": "other", "taking turns": 200}

plan = {"steps": 40, "every": 15, "died_after": 37, "step_seconds": 20, "heartbeat": 100}
seen = {"waited": silent[2] / SHORT_HEARTBEAT, "turns_ms": step_times[0][2]}
exercise("09.4").check(failure_costs, **plan, **seen)
