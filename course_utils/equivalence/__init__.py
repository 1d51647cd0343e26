"""Prove that a parallel training step does what one device does; say what is wrong if not.

from course_utils.equivalence import assert_equal_to_one_device

# The same jitted step on sharded arrays and on one device:
report = assert_equal_to_one_device(train_step, sharded_state, sharded_batch, steps=10)

# A step that is bound to its mesh, such as one with shard_map, needs the one it replaces:
assert_equal_to_one_device(parallel_step, state, batch, reference=train_step)

# Gradients alone, on which no optimizer can hide anything:
assert_equal_to_one_device(
    sgd_step(parallel_gradients), params, batch, reference=sgd_step(gradients)
)
"""

from course_utils.equivalence._assert import assert_equal_to_one_device, sgd_step
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
    "sgd_step",
]
