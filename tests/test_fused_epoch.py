"""An epoch as one program: the steps of the plain loop, reshuffled, compiled once, over bytes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from course_utils import fashion_mnist
from course_utils.compiles import count_compiles
from course_utils.models.fused_epoch import make_epoch, shuffled_rows
from course_utils.models.mlp import (
    init_params,
    init_state,
    loss_and_accuracy,
    make_train_step,
    to_model_input,
)
from course_utils.models.recipe import averaged, settled

BATCH, STEPS = 32, 12
COUNT = BATCH * STEPS + 5  # five images fill no batch
OPTIMIZERS = {
    "SGD": optax.sgd(0.1),
    "AdamW": optax.adamw(3e-3, weight_decay=1e-4),
    "AdamW with a schedule, averaged": averaged(
        optax.adamw(optax.linear_schedule(5e-3, 0.0, STEPS), nesterov=True), 0.9
    ),
}


@pytest.fixture(scope="module")
def data():
    """Bytes and labels of a few images, in host memory."""
    sample = fashion_mnist.load()
    return sample.train_images[:COUNT], sample.train_labels[:COUNT]


def fresh(optimizer, seed=1):
    return init_state(init_params(jax.random.key(seed), [784, 16, 10]), optimizer, jax.devices()[0])


def on_device(data):
    return jax.device_put(data, jax.devices()[0])


def moved_apart(tree, reference, start):
    """Norm of the difference of two trees, over the way that the second has come."""
    norm = optax.tree.norm
    return float(norm(optax.tree.sub(tree, reference)) / norm(optax.tree.sub(reference, start)))


def by_the_loop(optimizer, data, rows):
    """Params after the plain loop over those rows, with batches made in NumPy."""
    images, labels = data
    state, step = fresh(optimizer), make_train_step(loss_and_accuracy, optimizer)
    losses = []
    for of_step in rows:
        batch = to_model_input(images[of_step]), labels[of_step].astype(np.int32)
        state, metrics = step(state, on_device(batch))
        losses.append(float(metrics["loss"]))
    return state, losses


def by_the_epoch(optimizer, data, rows):
    fixed = {"draw_rows": lambda *_: jnp.asarray(rows)}
    epoch = make_epoch(loss_and_accuracy, optimizer, BATCH, to_model_input, **fixed)
    return epoch(fresh(optimizer), jax.random.key(0), *on_device(data))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).permutation(COUNT)[: BATCH * STEPS].reshape(STEPS, BATCH)


# Over ten seeds and two versions of JAX, rounding moved them apart by at most 1.5e-6 of the way with SGD,
# and by 4.2e-4 with AdamW, whose first updates have the size of the rate however small the gradient.
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_on_the_same_order_it_has_the_loops_parameters(name, data, rows):
    optimizer = OPTIMIZERS[name]
    looped, losses = by_the_loop(optimizer, data, rows)
    state, metrics = by_the_epoch(optimizer, data, rows)
    start = fresh(optimizer)[0]
    assert moved_apart(state[0], looped[0], start) < (1e-4 if name == "SGD" else 2e-3)
    assert moved_apart(settled(state), settled(looped), start) < 2e-3
    np.testing.assert_allclose(metrics["loss"], losses, rtol=1e-3)


def test_another_order_ends_elsewhere_so_the_comparison_can_tell(data, rows):
    optimizer = OPTIMIZERS["SGD"]
    looped, _ = by_the_loop(optimizer, data, rows)
    state, _ = by_the_epoch(optimizer, data, rows[::-1])
    assert moved_apart(state[0], looped[0], fresh(optimizer)[0]) > 0.01


def test_metrics_are_stacked_one_for_each_step(data):
    epoch = make_epoch(loss_and_accuracy, OPTIMIZERS["SGD"], BATCH, to_model_input)
    _, metrics = epoch(fresh(OPTIMIZERS["SGD"]), jax.random.key(0), *on_device(data))
    assert {name: (x.shape, x.dtype) for name, x in metrics.items()} == {
        "loss": ((STEPS,), np.float32),
        "accuracy": ((STEPS,), np.float32),
    }
    assert metrics["loss"][0] > metrics["loss"][-1]


@pytest.mark.parametrize("count", [COUNT, 64, 65, 4096, 60_000])
def test_an_epoch_sees_no_index_twice_and_leaves_out_what_fills_no_batch(count):
    drawn = np.asarray(shuffled_rows(jax.random.key(3), count, 32))
    assert drawn.shape == (count // 32, 32)
    assert len(np.unique(drawn)) == drawn.size
    assert drawn.min() >= 0
    assert drawn.max() < count


def test_every_epoch_has_another_order_and_a_key_repeats_its_own():
    one, again, other = (
        np.asarray(shuffled_rows(jax.random.key(k), COUNT, BATCH)) for k in (1, 1, 2)
    )
    assert (one == again).all()
    assert (one != other).mean() > 0.9
    assert set(one.ravel()) != set(other.ravel())  # and leaves out other images


def test_every_image_is_as_likely_in_every_place():
    draws = [np.asarray(shuffled_rows(jax.random.key(k), 10, 10)) for k in range(400)]
    counts = np.array([np.bincount(place, minlength=10) for place in np.concatenate(draws).T])
    # 400 draws put 40 on each of 100 fields, give or take 6; the largest of 100 stays within 4.5 times that.
    assert np.abs(counts - 40).max() < 27


@pytest.mark.parametrize("count", [0, 31])
def test_too_few_images_for_a_batch_are_an_error_that_says_so(count, data):
    epoch = make_epoch(loss_and_accuracy, OPTIMIZERS["SGD"], 32, to_model_input)
    few = on_device((data[0][:count], data[1][:count]))
    with pytest.raises(ValueError, match=f"{count} images don't fill one batch of 32"):
        epoch(fresh(OPTIMIZERS["SGD"]), jax.random.key(0), *few)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_several_epochs_compile_one_program(name, data):
    optimizer, images_and_labels = OPTIMIZERS[name], on_device(data)
    epoch = make_epoch(loss_and_accuracy, optimizer, BATCH, to_model_input)
    state, keys = fresh(optimizer), list(jax.random.split(jax.random.key(0), 3))
    counts = []
    for key in keys:
        with count_compiles() as compiles:
            state, _ = epoch(state, key, *images_and_labels)
        counts.append(compiles.count)
    assert counts == [1, 0, 0]


def test_images_stay_bytes_on_the_device(data):
    optimizer, images_and_labels = OPTIMIZERS["SGD"], on_device(data)
    epoch = make_epoch(loss_and_accuracy, optimizer, BATCH, to_model_input)
    arguments = fresh(optimizer), jax.random.key(0), *images_and_labels
    program = epoch.lower(*arguments).compile().as_text()
    assert f"u8[{COUNT},28,28]" in program
    assert f"f32[{COUNT}," not in program


def test_the_state_is_donated_and_the_data_are_not(data):
    optimizer, images_and_labels = OPTIMIZERS["AdamW"], on_device(data)
    epoch = make_epoch(loss_and_accuracy, optimizer, BATCH, to_model_input)
    old = fresh(optimizer)
    new, _ = epoch(old, jax.random.key(0), *images_and_labels)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(old))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((new, images_and_labels)))
