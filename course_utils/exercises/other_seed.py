"""A process that trains twice, as all should and in an order of its own: exercise 09.3 starts two.

It prints one line of JSON: for each check of that exercise whether it notices, and a digest of this
process's copy of the parameters.
"""

import hashlib
import json
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from course_utils import fashion_mnist
from course_utils.processes import training
from course_utils.processes.joining import join, run_or_end, say

STEPS, BATCH, RATE = 20, 64, 0.1
OTHER = 1000  # added to the seed, for each process before this one


def own_order(epoch: int, examples: int) -> np.ndarray:
    """The fault: the order of the examples in an epoch, another one in each process."""
    return np.random.default_rng(epoch + OTHER * jax.process_index()).permutation(examples)


def trained(mesh: Mesh) -> tuple[list[np.ndarray], list[str]]:
    """This process's copy of the parameters after training, and what the training logged."""
    lines: list[str] = []
    run = training.Run(STEPS, BATCH, RATE, 1, checkpoint=None, checkpoint_every=STEPS)
    params = training.train(mesh, fashion_mnist.load(), run, lines.append)
    return [np.asarray(leaf.addressable_data(0)) for leaf in jax.tree.leaves(params)], lines


def watched(batches: list[tuple[int, ...]]) -> Any:
    """`training.global_batch`, which notes the shape of the images in `batches`."""
    build = training.global_batch

    def watching(*arguments: Any) -> Any:
        batch = build(*arguments)
        batches.append(batch[0].shape)
        return batch

    return watching


def compare() -> None:
    """Train rightly, then with the fault, and let each check look at the second run."""
    join()
    mesh = Mesh(jax.devices(), "data")
    right, _ = trained(mesh)
    shapes: list[tuple[int, ...]] = []
    training.shuffled, training.global_batch = own_order, watched(shapes)
    found, lines = trained(mesh)
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in lines if ": loss" in line]
    (sent,) = [line for line in lines if "communicates" in line]
    norm = np.linalg.norm
    off = max(float(norm(a - b) / norm(b)) for a, b in zip(found, right, strict=True))
    facts = {
        "shape": set(shapes) != {(BATCH, 784)},
        "loss": losses[-1] >= losses[0],
        "one all-reduce": "communicates: 1 all-reduce of" not in sent or ";" in sent,
        "parameters": off > 1e-5,  # what the lesson allows
        "parameters as bytes": hashlib.sha256(b"".join(x.tobytes() for x in found)).hexdigest(),
    }
    say(json.dumps(facts))
    jax.distributed.shutdown()


if __name__ == "__main__":
    run_or_end(compare)
