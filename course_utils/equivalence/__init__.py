"""Prove that a parallel training step does what one device does; say what is wrong if not.

Call
----
from course_utils.equivalence import assert_equal_to_one_device

# The same jitted step on sharded arrays and on one device:
report = assert_equal_to_one_device(train_step, sharded_state, sharded_batch, steps=10)

# A step that is bound to its mesh, such as one with shard_map, needs the one it replaces:
assert_equal_to_one_device(parallel_step, state, batch, reference=train_step)

# Gradients alone, on which no optimizer can hide anything:
assert_equal_to_one_device(
    sgd_step(parallel_gradients), params, batch, reference=sgd_step(gradients)
)

A step takes (state, batch) and returns (state, metrics), all of them pytrees. Whatever training
carries along belongs to the state: parameters, optimizer state, running statistics, step counters.
Without GPUs, JAX simulates devices: set JAX_PLATFORMS=cpu and JAX_NUM_CPU_DEVICES=8 before Python
starts. Try two numbers of devices: some faults hide in one.

Randomness
----------
Steps that take (state, batch, key) are given one by `key=jax.random.key(0)`: step i gets
`jax.random.fold_in(key, i)`, the same on both sides. A key may as well travel in the state, where
it is compared, or in the batch. What is drawn must not depend on the devices. Under jit with sharded
arrays it doesn't. Inside shard_map and pmap draw from `example_keys(key, examples, axis_name)`, one
key per example by its place in the global batch, on one device too.

Ragged batches
--------------
`pad_batch(batch, multiple_of)` returns the batch, lengthened, and a mask; `weighted_mean(values,
mask, axis_name)` is the mean over all real examples on all devices. The reference can stay the
untouched script on the batch as it was: give the parallel step the padded batch with its mask, and
`reference_batches=[unpadded]`, one for each batch. Rows that the mask leaves out are then not expected there.

Metrics
-------
They are compared as they come, so a step must return those of the global batch: sums and counts by
psum, extremes by pmax and pmin, means as a psum of sums over a psum of counts. One that lacks its
reduction differs in shape or between replicas, and the report says which reduction is missing.
Counts of decisions, such as correct predictions or a confusion matrix, may differ by examples whose
decision rounding can turn.

Schedules and gradient accumulation
-----------------------------------
A schedule's counter is in the optimizer's state, so it is compared exactly; run more steps than the
warm-up has. If the parallel step accumulates over micro-batches, the reference may take the whole
batch at once: `micro_batches=True` merges (micro-batches, examples, ...) for it. With
optax.MultiSteps on the parallel side, use `optax.MultiSteps(optimizer, 1)` in the reference, so that
both have the same state.

Flax and Equinox
----------------
Their modules are pytrees, so they can be the state, or a part of it; leaves that are no numbers, such
as an activation function, are left as they are. A step under nnx.jit changes modules in place, and
gets copies here:

    def step(modules, batch):
        loss = train_step(*modules, batch)     # under nnx.jit, with (model, optimizer, batch)
        return modules, {"loss": loss}

    assert_equal_to_one_device(step, (model, optimizer), batch, reference=...)

nnx.split works as well: keep the GraphDef in the step, and the State in the state.

Tolerances
----------
They follow from the narrowest float that the reference computes in, as `_tolerance.py` derives and
measures. Pass rtol= for anything else.

Read the report
---------------
`report.ok`, `report.worst`, `report.rows` (under `HEADERS`, for a table), `str(report)`. A difference
raises NotEqualToOneDevice, whose `report` is about the first step in which anything differs. For each
leaf it has

- the relative error: of the way that the leaf has moved on one device, not of its value;
- the factor: how many times as far as the reference's it has moved in this step; of a metric, how
  many times the reference's value it is;
- the verdict: equal, unproved (nothing speaks against it, and nothing for it), or how it differs.

`report.suggestion` is the likely cause. It is found by trying causes on the reference: a factor that
is the number of devices, replicas that differ, an update that one device makes from one shard alone.
It says so when none fits, and how to go on: switch off, on both sides, the random numbers and what
isn't linear in the gradient, such as clipping, compare, and switch it on again piece by piece.
"""

from course_utils.equivalence._assert import assert_equal_to_one_device, sgd_step
from course_utils.equivalence._parts import example_keys, pad_batch, weighted_mean
from course_utils.equivalence._report import (
    HEADERS,
    Leaf,
    NotEqualToOneDevice,
    NothingProved,
    Report,
)

__all__ = [
    "HEADERS",
    "Leaf",
    "NotEqualToOneDevice",
    "NothingProved",
    "Report",
    "assert_equal_to_one_device",
    "example_keys",
    "pad_batch",
    "sgd_step",
    "weighted_mean",
]
