"""Whatever a learner hands in gets a clear answer: agreement, a difference, or what to change."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from equivalence_steps import (
    SGD,
    compared,
    fault,
    host_batch,
    host_params,
    host_state,
    make_mesh,
    mapped,
    mean_loss,
    one_device,
    put,
    right_local,
)
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from processes import run_python

from course_utils.equivalence import (
    NotEqualToOneDevice,
    NothingProved,
    assert_equal_to_one_device,
    sgd_step,
)

X = np.linspace(0.5, 2, 8).astype(np.float32)


W = np.ones(2, np.float32)


def spread(state, devices=4):
    """The state on all devices, the batch X split."""
    return put(make_mesh(devices), state, X)


def move(state, x):
    """A step on any tree: floats move with the batch, all else stays."""

    def leaf(value):
        inexact = jnp.issubdtype(getattr(value, "dtype", np.int32), jnp.inexact)
        return value - (0.1 * x.mean()).astype(value.dtype) if inexact else value

    return jax.tree.map(leaf, state), None


def compare(state, wrong=None, right=move, devices=4, **options):
    """Compare `move` with a step that goes on with `wrong(state)`."""
    state, x = spread(state, devices)

    def step(state, x):
        state, metrics = right(state, x)
        return (wrong(state) if wrong else state), metrics

    options = {"steps": 2, "reference": jax.jit(right)} | options
    return assert_equal_to_one_device(jax.jit(step), state, x, **options)


def differences(*args, **kwargs):
    with pytest.raises(NotEqualToOneDevice) as failure:
        compare(*args, **kwargs)
    report = failure.value.report
    return {leaf.path: leaf.verdict for leaf in report.leaves if leaf.status == "differs"}, report


# What a state may be made of


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64])
def test_floats_of_every_width_are_compared(dtype):
    state = {"w": np.ones(8, dtype)}
    assert compare(state).ok
    bad, _ = differences(state, lambda s: {"w": s["w"] * 0 + 5})
    assert "state['w']" in bad


def test_float64_is_compared_as_such():
    result = run_python("""
        import jax, numpy as np
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_num_cpu_devices", 2)
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        from course_utils.equivalence import NotEqualToOneDevice, assert_equal_to_one_device
        mesh = Mesh(np.array(jax.devices()), ("data",))
        w = jax.device_put(np.ones(4), NamedSharding(mesh, P()))
        x = jax.device_put(np.arange(8.0), NamedSharding(mesh, P("data")))
        step = jax.jit(lambda w, x: (w - x.mean(), None))
        off = jax.jit(lambda w, x: (w - x.mean() * (1 + 1e-9), None))
        assert assert_equal_to_one_device(step, w, x).worst.relative_error < 1e-12
        try:
            assert_equal_to_one_device(off, w, x, reference=step)
        except NotEqualToOneDevice:
            print("found")
    """)
    assert result.stdout.strip() == "found", result.stderr


MIXED = {
    "w": np.ones(3, np.float32),
    "count": np.int32(3),
    "flags": np.array([True, False]),
    "key": None,
    "nothing": None,
    "nested": [(np.ones((2, 2), np.float32),), {}],
}


def mixed():
    return MIXED | {"key": jax.random.key(0)}


def test_keys_bools_integers_and_none_are_welcome():
    report = compare(mixed())
    assert report.ok
    assert len(report.leaves) == 5


@pytest.mark.parametrize(
    ("path", "wrong", "said"),
    [
        ("count", lambda s: s["count"] + 1, "1 of 1 int32 entries differ"),
        ("flags", lambda s: ~s["flags"], "2 of 2 bool entries differ"),
        ("key", lambda s: jax.random.split(s["key"])[0], "2 of 2 key<fry> entries differ"),
    ],
)
def test_keys_bools_and_integers_are_compared_exactly(path, wrong, said):
    bad, report = differences(mixed(), lambda s: s | {path: wrong(s)})
    assert bad == {f"state['{path}']": said}
    assert f"state['{path}']" in report.suggestion


def test_python_numbers_in_state_and_metrics_are_welcome():
    def step(state, x):
        moved, _ = jax.jit(move)(state["w"], x)
        return {"w": moved, "lr": state["lr"], "n": state["n"] + 1}, {"loss": float(moved.sum())}

    w, x = put(make_mesh(4), np.ones(3, np.float32), X)
    assert assert_equal_to_one_device(step, {"w": w, "lr": 0.1, "n": 0}, x).ok

    def wrong(state, x):
        new, metrics = step(state, x)
        return new, {"loss": 4 * metrics["loss"]}

    with pytest.raises(NotEqualToOneDevice, match=r"exactly 4 times .* mesh axis 'data'"):
        assert_equal_to_one_device(wrong, {"w": w, "lr": 0.1, "n": 0}, x, reference=step)


def test_arrays_on_the_host_are_welcome():
    mesh = make_mesh(4)
    step, reference = mapped(SGD, mesh, right_local), one_device(SGD)
    report = assert_equal_to_one_device(step, host_state(SGD), host_batch(), reference=reference)
    assert report.devices == 4


# NaN and infinities


def nan_at(step_of_nan):
    def right(state, x):
        moved, _ = move(state["w"], x)
        n = state["n"] + 1
        return {"w": jnp.where(n == step_of_nan, jnp.nan, moved), "n": n}, None

    return right


STATE = {"w": np.ones(4, np.float32), "n": np.int32(0)}


def test_nan_in_the_parallel_step_only_is_named_with_its_step():
    state, x = spread(STATE)
    report = fault(jax.jit(nan_at(2)), state, x, reference=jax.jit(nan_at(9)), steps=4)
    assert "NaN in the parallel step only, since step 2" in str(report)


def test_nan_in_the_reference_only_is_named():
    state, x = spread(STATE)
    with pytest.raises(NotEqualToOneDevice, match="NaN in the reference only, since step 1"):
        assert_equal_to_one_device(jax.jit(nan_at(9)), state, x, reference=jax.jit(nan_at(1)))


def test_nan_everywhere_on_both_sides_proves_nothing():
    state, x = spread(STATE)
    with pytest.raises(NothingProved, match=r"(?s)NaN on both sides since step 1.*broken down"):
        assert_equal_to_one_device(jax.jit(nan_at(1)), state, x, steps=2)


def test_the_same_nan_and_inf_in_the_same_entries_leave_the_others_compared():
    def right(state, x):
        moved, _ = move(state, x)
        return moved.at[0].set(jnp.nan).at[1].set(jnp.inf), None

    w = np.ones(4, np.float32)
    report = compare(w, right=right)
    assert "NaN on both sides in 2 entries since step 1" in report.leaves[0].verdict
    bad, _ = differences(w, lambda s: s.at[3].add(1.0), right)
    assert bad
    bad, _ = differences(w, lambda s: s.at[1].set(-jnp.inf), right)
    assert "in other places" in bad["state"]


# Structure


def test_what_is_missing_and_what_is_extra_is_named():
    def right(state, x):
        return move(state, x)[0], {"loss": x.mean(), "accuracy": x.sum()}

    def step(state, x):
        return move(state, x)[0], {"loss": x.mean(), "acc": x.sum()}

    state, x = spread(W, 2)
    text = str(fault(jax.jit(step), state, x, reference=jax.jit(right)))
    assert "metrics['accuracy']: missing" in text
    assert "metrics['acc']: the reference has no such leaf" in text
    assert assert_equal_to_one_device(
        jax.jit(step), state, x, reference=jax.jit(right), check_metrics=False
    ).ok


def test_another_shape_is_named():
    bad, report = differences({"w": np.ones(4, np.float32)}, lambda s: {"w": s["w"][:2]})
    assert bad == {"state['w']": "shape (2,), the reference's is (4,)"}
    assert "another shape" in report.suggestion


def test_a_reference_that_returns_another_state_than_it_takes_is_refused():
    with pytest.raises(ValueError, match=r"returns another state than it takes.*state\['w'\]: mis"):
        compare({"w": np.ones(4, np.float32)}, right=lambda s, x: ([s["w"]], None))


@pytest.mark.parametrize("side", ["parallel", "reference"])
def test_a_step_that_returns_no_pair_is_refused(side):
    state, x = spread(W, 2)
    steps = {"parallel": move, "reference": move} | {side: lambda s, x: s}
    with pytest.raises(TypeError, match=f"(?i)the {side} step must return .state, metrics."):
        assert_equal_to_one_device(steps["parallel"], state, x, reference=steps["reference"])


# Batches and devices


def test_a_batch_that_does_not_divide_by_the_mesh_gets_the_cure():
    mesh = make_mesh(4)
    step = mapped(SGD, mesh, right_local)
    with pytest.raises(ValueError, match=r"doesn't divide.*\(10, 6\).*give the step a mask"):
        assert_equal_to_one_device(
            step, host_state(SGD), host_batch(examples=10), reference=one_device(SGD)
        )
    split = jax.jit(one_device(SGD), in_shardings=(None, NamedSharding(mesh, P("data"))))
    with pytest.raises(ValueError, match="doesn't divide"):
        assert_equal_to_one_device(
            split, host_state(SGD), host_batch(examples=10), reference=one_device(SGD)
        )


def test_a_step_bound_to_its_mesh_asks_for_a_reference():
    arguments = compared(4, right_local) | {"reference": None}
    with pytest.raises(ValueError, match=r"bound to its mesh.*Pass reference="):
        assert_equal_to_one_device(**arguments)


def test_a_reference_that_spreads_over_several_devices_is_refused():
    mesh = make_mesh(4)
    state, batch = put(mesh, host_params(), host_batch())
    spread = jax.jit(sgd_step(jax.grad(mean_loss)), out_shardings=NamedSharding(mesh, P()))

    def gathered(params, batch):
        return spread(*put(mesh, jax.device_get(params), jax.device_get(batch)))

    with pytest.raises(ValueError, match="compared with itself proves nothing"):
        assert_equal_to_one_device(gathered, state, batch)


def test_a_whole_batch_on_every_device_is_remarked():
    state, batch = put(make_mesh(4), (host_state(SGD), host_batch()), None)[0]
    report = assert_equal_to_one_device(one_device(SGD), state, batch)
    assert "each device holds the whole batch" in str(report)


def test_errors_of_the_steps_themselves_say_whose_they_are():
    def broken(state, x):
        raise KeyError("momentum")

    state, x = spread(W, 2)
    with pytest.raises(KeyError) as failure:
        assert_equal_to_one_device(broken, state, x, reference=move)
    assert "Raised by the parallel step, in step 1" in failure.value.__notes__[0]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("from_host", [False, True])
def test_steps_may_donate_and_the_callers_arrays_survive(from_host):
    optimizer = optax.adam(1e-2)
    step = jax.jit(one_device(optimizer), donate_argnums=(0, 1))
    state, batch = host_state(optimizer), host_batch()
    if not from_host:
        state, batch = put(make_mesh(4), state, batch)
    before = jax.tree.map(np.array, (state, batch))
    for _ in range(2):
        assert assert_equal_to_one_device(step, state, batch, steps=4).ok
    jax.tree.map(np.testing.assert_array_equal, (state, batch), before)


def test_arrays_that_were_donated_before_are_named():
    state, x = spread(W)
    jax.jit(lambda s: s + 1, donate_argnums=0)(state)
    with pytest.raises(ValueError, match=r"state has been deleted.*donated"):
        assert_equal_to_one_device(move, state, x)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps": 0}, "steps >= 1, not 0"),
        ({"reference_batches": []}, "has 0 batches"),
    ],
)
def test_impossible_requests_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        assert_equal_to_one_device(move, np.ones(2, np.float32), X, **changed)
    with pytest.raises(ValueError, match="no leaves"):
        assert_equal_to_one_device(move, (), X)


# Agreement that means nothing


def test_a_step_that_trains_nothing_proves_nothing():
    with pytest.raises(NothingProved, match="the reference step changes nothing but counters"):
        compare(STATE, right=lambda s, x: (s | {"n": s["n"] + 1}, x.mean()))


def test_a_leaf_that_never_moves_is_unproved_but_no_failure():
    def right(state, x):
        return state | {"w": state["w"] - x.mean()}, None

    report = compare({"w": np.ones(2, np.float32), "dead": np.ones(2, np.float32)}, right=right)
    assert [leaf.status for leaf in report.leaves] == ["unproved", "equal"]
    assert "nothing is proved about state['dead']" in str(report)


def test_a_leaf_that_only_one_side_moves_is_a_failure():
    def right(state, x):
        return state | {"w": state["w"] - x.mean()}, None

    state = {"w": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    bad, _ = differences(state, lambda s: s | {"b": s["b"] + 1}, right)
    assert bad == {"state['b']": "moves, the reference's doesn't"}
    bad, _ = differences(state, lambda s: s | {"w": jnp.ones(2)}, right, steps=1)
    assert bad == {"state['w']": "doesn't move, the reference's does"}


def test_updates_below_the_rounding_of_their_dtype_are_unproved():
    def right(state, x):
        return {n: (w - 0.01 * x.mean().astype(w.dtype)) for n, w in state.items()}, None

    state = {"w": np.ones(64, np.float32), "half": np.linspace(1, 2, 64).astype(jnp.bfloat16)}

    def nearly(state):
        return state | {"half": state["half"].at[::2].add(jnp.bfloat16(2**-7))}

    report = compare(state, nearly, right, steps=1)
    assert report.leaves[0].path == "state['half']"
    assert report.leaves[0].verdict == "unproved: its change is no larger than its rounding"

    with pytest.raises(NothingProved, match="lost in the rounding"):
        compare({"half": state["half"]}, nearly, right, steps=1)


def test_rtol_overrides_the_tolerance_both_ways():
    def close(state):
        return {"w": state["w"] * (1 + 1e-3)}

    state = {"w": np.ones(4, np.float32)}
    assert compare(state, close, rtol=0.2).ok
    assert differences(state, close)[0]


def test_a_long_report_shows_what_differs_first_and_cuts_the_rest():
    state = {f"w{i:03}": np.ones(2, np.float32) for i in range(60)}
    _, report = differences(state, lambda s: s | {"w059": s["w059"] * 2})
    lines = str(report).splitlines()
    assert len(lines) < 32
    assert "w059" in lines[2]
    assert "... and 36 more" in str(report)


def test_fifty_steps_on_eight_simulated_devices_come_to_an_end():
    state, x = spread(W, 8)
    assert assert_equal_to_one_device(jax.jit(move), state, x, steps=50).steps == 50
