"""The parts of a recipe: input, schedule, loss, averaging, and the optimizer made of them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from course_utils import fashion_mnist
from course_utils.models.mlp import init_params, loss_and_accuracy, to_model_input
from course_utils.models.recipe import (
    averaged,
    make_loss,
    make_optimizer,
    make_schedule,
    pixel_moments,
    settled,
    standardiser,
)

RECIPE = {
    "schedule": "linear",
    "peak": 1e-2,
    "weight decay": 0.1,
    "b2": 0.98,
    "nesterov": True,
    "average": 0.9,
}


@pytest.fixture(scope="module")
def images():
    return fashion_mnist.load().train_images[:2000]


@pytest.fixture(scope="module")
def params():
    return init_params(jax.random.key(0), [784, 16, 10])


def test_moments_are_those_of_each_pixel_alone(images):
    mean, spread = pixel_moments(images)
    rows = images.reshape(len(images), -1).astype(np.float64) / 255
    np.testing.assert_allclose(mean, rows.mean(0), atol=1e-5)
    np.testing.assert_allclose(spread, rows.std(0), atol=1e-5)


def test_standardised_pixels_have_mean_0_and_a_spread_just_below_1(images):
    rows = np.asarray(standardiser(images)(images))
    assert rows.shape == (2000, 784)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-4)
    _, spread = pixel_moments(images)
    np.testing.assert_allclose(rows.std(0), spread / (spread + 0.1), atol=1e-4)


def test_other_images_are_standardised_by_what_was_learned(images):
    halves = images[:1000], images[1000:]
    learned, own = (np.asarray(standardiser(half)(halves[1])) for half in halves)
    assert np.abs(learned - own).max() > 1e-3
    mean, spread = pixel_moments(halves[0])
    np.testing.assert_allclose(
        learned, (to_model_input(halves[1]) - mean) / (spread + 0.1), atol=1e-4
    )


def test_a_pixel_that_never_changes_stays_finite():
    blank = np.full((5, 28, 28), 7, np.uint8)
    assert np.abs(standardiser(blank)(blank)).max() < 1e-5


def test_schedules_rise_to_their_peak_and_fall_to_their_end():
    steps = np.arange(101)
    linear, exponential, constant = (
        np.array([make_schedule(kind, 0.01, 100)(step) for step in steps])
        for kind in ("linear", "exponential", "constant")
    )
    for rates in (linear, exponential):
        assert rates[0] == pytest.approx(0.01 / 20)
        assert rates.argmax() == 10
        assert rates.max() == pytest.approx(0.01)
        assert (np.diff(rates[10:]) < 0).all()
    assert linear[100] == pytest.approx(0, abs=1e-9)
    assert exponential[100] == pytest.approx(0.01 / 100)
    assert np.diff(np.log(exponential[10:])).std() < 1e-4  # the same factor in every step
    assert (constant == 0.01).all()


@pytest.mark.parametrize("steps", [1, 2, 9, 10])
def test_a_run_of_a_few_steps_has_a_schedule_too(steps):
    rates = [float(make_schedule("linear", 0.01, steps)(step)) for step in range(steps)]
    assert all(0 <= rate <= 0.01 + 1e-9 for rate in rates)
    assert max(rates) > 0


def test_an_unknown_schedule_is_an_error():
    with pytest.raises(KeyError, match="cosine"):
        make_schedule("cosine", 0.01, 100)


def test_without_smoothing_the_loss_is_that_of_lesson_01(images, params):
    batch = to_model_input(images[:64]), fashion_mnist.load().train_labels[:64].astype(np.int32)
    np.testing.assert_allclose(
        make_loss(0.0)(params, batch), loss_and_accuracy(params, batch), rtol=1e-5
    )


def test_smoothing_mixes_in_the_mean_over_all_classes(images, params):
    batch = to_model_input(images[:64]), fashion_mnist.load().train_labels[:64].astype(np.int32)
    hard = loss_and_accuracy(params, batch)[0]
    of_each_class = [loss_and_accuracy(params, (batch[0], np.full(64, k)))[0] for k in range(10)]
    expected = 0.8 * hard + 0.2 * np.mean(of_each_class)
    assert float(make_loss(0.2)(params, batch)[0]) == pytest.approx(float(expected), rel=1e-5)


def test_the_average_follows_the_parameters_and_leaves_the_steps_alone(params):
    inner = optax.sgd(0.5, momentum=0.9)
    wrapped = averaged(inner, 0.8)
    plain, plain_state, state, averages = params, inner.init(params), wrapped.init(params), params
    for step in range(4):
        grads = jax.tree.map(lambda p, s=step: jnp.sin(p + s), plain)
        updates, plain_state = inner.update(grads, plain_state, plain)
        same, state = wrapped.update(grads, state, plain)
        jax.tree.map(np.testing.assert_array_equal, updates, same)
        plain = optax.apply_updates(plain, updates)
        averages = jax.tree.map(lambda a, p: 0.8 * a + 0.2 * p, averages, plain)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), settled((plain, state)), averages
    )


def test_without_an_average_the_parameters_themselves_are_judged(params):
    assert settled((params, optax.sgd(0.1).init(params))) is params


def test_the_average_shares_no_memory_with_the_parameters(params):
    state = averaged(optax.sgd(0.1), 0.9).init(params)
    pointers = [
        {leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(tree)}
        for tree in (params, state.average)
    ]
    assert not pointers[0] & pointers[1]


@pytest.mark.parametrize("changed", [{}, {"average": 0.0}, {"schedule": "constant"}])
def test_a_recipes_optimizer_is_adamw_with_its_schedule(changed, params):
    recipe = RECIPE | changed
    reference = optax.adamw(
        make_schedule(recipe["schedule"], 1e-2, 50), b2=0.98, weight_decay=0.1, nesterov=True
    )
    optimizer = make_optimizer(recipe, 50)
    state, expected_state = optimizer.init(params), reference.init(params)
    for _ in range(3):
        grads = jax.tree.map(jnp.cos, params)
        updates, state = optimizer.update(grads, state, params)
        expected, expected_state = reference.update(grads, expected_state, params)
        jax.tree.map(np.testing.assert_array_equal, updates, expected)
    assert (settled((params, state)) is params) == (recipe["average"] == 0)
