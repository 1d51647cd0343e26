"""What a step of one's own brings along: keys, ragged batches, micro-batches, modules."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from equivalence_steps import (
    MOMENTUM,
    SGD,
    compared,
    example_losses,
    fault,
    host_batch,
    host_state,
    make_mesh,
    one_device,
    own_gradients,
    pmean,
    put,
    right_local,
)
from equivalence_wrong_batches import RAGGED, keyed
from equivalence_wrong_optimizers import accumulated, micro
from equivalence_wrong_reductions import clipped, clipping, clipping_reference
from flax import nnx
from jax.sharding import PartitionSpec as P

from course_utils.equivalence import (
    assert_equal_to_one_device,
    example_keys,
    pad_batch,
    weighted_mean,
)

KEY = jax.random.key(5)


def over_devices(function, devices, *arrays, out=None):
    """`function` in shard_map, over so many devices."""
    inner = jax.shard_map(
        function,
        mesh=make_mesh(devices),
        in_specs=tuple(P("data") for _ in arrays),
        out_specs=out or P(),
    )
    return np.asarray(jax.device_get(jax.jit(inner)(*arrays)))


# Keys


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_an_example_has_the_same_key_on_however_many_devices(devices):
    rows = jnp.arange(24)
    keys = over_devices(
        lambda x: jax.random.key_data(example_keys(KEY, len(x), "data")),
        devices,
        rows,
        out=P("data"),
    )
    np.testing.assert_array_equal(keys, jax.random.key_data(example_keys(KEY, 24)))
    assert len(np.unique(keys, axis=0)) == 24


def test_keys_go_on_over_both_axes_of_a_mesh_and_under_pmap():
    mesh, axes = make_mesh(2, 4), ("data", "model")
    inner = jax.shard_map(
        lambda x: jax.random.key_data(example_keys(KEY, len(x), axes)),
        mesh=mesh,
        in_specs=P(axes),
        out_specs=P(axes),
    )
    whole = np.asarray(jax.random.key_data(example_keys(KEY, 24)))
    np.testing.assert_array_equal(jax.device_get(jax.jit(inner)(jnp.arange(24))), whole)
    mapped = jax.pmap(
        lambda x: jax.random.key_data(example_keys(KEY, len(x), "data")), axis_name="data"
    )
    np.testing.assert_array_equal(
        np.concatenate(jax.device_get(mapped(jnp.arange(24).reshape(8, 3)))), whole
    )


def test_old_style_keys_are_welcome():
    arguments = keyed(2, lambda key, examples: example_keys(key, examples, "data"))
    assert assert_equal_to_one_device(**arguments | {"key": jax.random.PRNGKey(7)}).ok


@pytest.mark.parametrize("key", [7, np.float32(1), jax.random.split(KEY, 2)])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(TypeError, match=r"one random key, jax\.random\.key\(seed\)"):
        assert_equal_to_one_device(lambda s, b, k: (s, None), np.ones(2), np.ones(2), key=key)


# Ragged batches


@pytest.mark.parametrize(("multiple", "rows"), [(1, 5), (4, 8), (5, 5), (64, 64)])
def test_padding_repeats_the_last_example_and_the_mask_tells(multiple, rows):
    batch = {"x": np.arange(10.0).reshape(5, 2), "y": jnp.arange(5, dtype=jnp.int8)}
    batch["key"] = jax.random.split(KEY, 5)
    padded, mask = pad_batch(batch, multiple)
    assert (mask.dtype, mask.tolist()) == (np.float32, [1.0] * 5 + [0.0] * (rows - 5))
    assert padded["y"].dtype == jnp.int8
    assert type(padded["x"]) is np.ndarray
    np.testing.assert_array_equal(padded["x"][5:], np.tile([[8.0, 9.0]], (rows - 5, 1)))
    np.testing.assert_array_equal(padded["x"][:5], batch["x"])
    assert padded["key"].shape == (rows,)


@pytest.mark.parametrize(
    ("batch", "multiple"),
    [
        ({"x": np.ones((5, 2)), "y": np.ones(4)}, 2),
        ({"x": np.ones((0, 2))}, 2),
        ({"x": np.float32(1)}, 2),
        ({}, 2),
        ({"x": np.ones(5)}, 0),
    ],
    ids=["uneven", "empty", "scalar", "no leaves", "multiple of 0"],
)
def test_what_cannot_be_padded_is_refused(batch, multiple):
    with pytest.raises(ValueError, match="same number of examples"):
        pad_batch(batch, multiple)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_a_weighted_mean_is_the_one_of_all_examples(devices):
    values, weights = np.linspace(1, 9, 48, dtype=np.float32), RAGGED["mask"]
    found = over_devices(lambda v, w: weighted_mean(v, w, "data"), devices, values, weights)
    assert found == pytest.approx(values[:45].mean(), rel=1e-6)
    assert weighted_mean(values, weights) == pytest.approx(values[:45].mean(), rel=1e-6)


def weighted(params, batch):
    return weighted_mean(example_losses(params, batch), batch["mask"], "data")


def test_the_gradient_of_a_weighted_mean_needs_no_reduction_for_replicated_params():
    arguments = compared(
        4,
        lambda p, b: jax.value_and_grad(weighted)(p, b),
        batch=RAGGED,
        reference_batches=[host_batch(examples=45)],
    )
    assert assert_equal_to_one_device(**arguments).ok


def test_the_gradient_of_a_weighted_mean_for_varying_params_is_a_part_to_psum():
    def local(params, batch):
        params = jax.lax.pcast(params, "data", to="varying")
        loss, grads = jax.value_and_grad(weighted)(params, batch)
        return loss, jax.lax.psum(grads, "data")

    arguments = compared(4, local, batch=RAGGED, reference_batches=[host_batch(examples=45)])
    assert assert_equal_to_one_device(**arguments).ok


def test_reference_batches_without_padding_must_hold_every_real_example():
    short = {name: value[:44] for name, value in host_batch(examples=45).items()}
    report = fault(**compared(4, right_local, batch=RAGGED, reference_batches=[short]))
    assert "isn't the reference's" in report.suggestion
    assert report.steps == 0


@pytest.mark.parametrize("wrap", [lambda b, m: (b, m), lambda b, m: (*b.values(), m)])
def test_a_mask_is_found_wherever_the_batch_carries_it(wrap):
    whole = host_batch(examples=45)
    padded = wrap(*pad_batch(whole, 48))
    reference = tuple(whole.values()) if len(padded) == 3 else whole

    @jax.jit
    def script(state, batch):
        return one_device(SGD)(state, {"x": batch[0], "y": batch[1]})

    def local(params, batch):
        *given, mask = batch
        given = given[0] if len(given) == 1 else {"x": given[0], "y": given[1]}
        return jax.value_and_grad(weighted)(params, given | {"mask": mask})

    arguments = compared(4, local, SGD, batch=padded, reference_batches=[reference])
    script = script if len(padded) == 3 else one_device(SGD)
    assert assert_equal_to_one_device(**arguments | {"reference": script}).ok


# Micro-batches


def test_stacked_micro_batches_are_merged_for_the_reference():
    def local(state, batch):
        total = jax.lax.pmean(accumulated(state, batch, jnp.add), "data")
        loss, grads = jax.tree.map(lambda x: x / len(batch["y"]), total)
        updates, opt_state = MOMENTUM.update(grads, state[1])
        return (jax.tree.map(jnp.add, state[0], updates), opt_state), {"loss": loss}

    arguments = micro(2, local)
    state = jax.tree.map(lambda x: np.stack([x] * 2), host_state(MOMENTUM))
    batch = jax.tree.map(lambda x: x.reshape(2, 3, 8, *x.shape[1:]), host_batch())
    step = jax.pmap(local, axis_name="data", devices=jax.devices()[:2])
    arguments |= {"step": step, "state": state, "batch": batch, "stacked": True}
    assert assert_equal_to_one_device(**arguments).ok


# Modules


class NoTree:
    def __init__(self):
        self.weight = np.ones(3)

    def __call__(self, x):
        return x @ self.weight


def test_an_object_that_hides_arrays_is_refused_though_it_can_be_called():
    with pytest.raises(TypeError, match=r"state\['model'\] is a NoTree.*nnx\.split"):
        assert_equal_to_one_device(
            lambda s, b: (s, None), {"w": np.ones(2), "model": NoTree()}, np.ones(2)
        )


@eqx.filter_jit
def narrow(state, batch):
    model, batch = state, jax.tree.map(lambda x: x.astype(jnp.bfloat16), batch["x"])

    def loss(model):
        cast = jax.tree.map(lambda x: x.astype(jnp.bfloat16) if eqx.is_array(x) else x, model)
        return jnp.square(jax.vmap(cast)(batch)).mean().astype(jnp.float32)

    loss, grads = eqx.filter_value_and_grad(loss)(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads)), {"loss": loss}


def test_the_precision_of_a_step_is_seen_through_functions_among_its_leaves():
    model = eqx.nn.MLP(6, 4, 8, 1, key=KEY)
    arrays, rest = eqx.partition(model, eqx.is_array)
    arrays, batch = put(make_mesh(8), arrays, host_batch())
    report = assert_equal_to_one_device(narrow, eqx.combine(arrays, rest), batch)
    assert 1e-4 < report.worst.relative_error < 5e-2


def test_modules_that_a_step_changes_in_place_stay_as_they_were_for_the_caller():
    model = nnx.Linear(6, 4, rngs=nnx.Rngs(0))
    before = np.array(model.kernel[...])

    @nnx.jit
    def train(model, batch):
        grads = nnx.grad(lambda m: jnp.square(m(batch["x"])).mean())(model)
        moved = jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model), grads)
        nnx.update(model, moved)

    def step(model, batch):
        train(model, batch)
        return model, None

    model, batch = put(make_mesh(4), model, host_batch())
    assert assert_equal_to_one_device(step, model, batch).ok
    np.testing.assert_array_equal(model.kernel[...], before)


# Questions


def test_a_reference_that_takes_no_other_batch_still_gets_a_report():
    def strict(state, batch):
        if len(batch["y"]) != 48:
            raise ValueError("48 examples, please")
        return clipping_reference(state, batch)

    def local(params, batch):
        loss, grads = own_gradients(params, batch)
        return *pmean((loss, clipped(grads))), optax.tree.norm(pmean(grads))

    report = fault(**clipping(4, local) | {"reference": strict})
    assert "no known fault fits" in report.suggestion
    assert report.worst.status == "differs"
