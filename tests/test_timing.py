"""`measure` takes honest times, or says why it can't."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from processes import run_python

from course_utils import timing
from course_utils.timing import matmul_rate, matmul_rates, measure

BATCHES = [jnp.full((4, 3), float(i)) for i in range(3)]


@jax.jit
def add_up(state, batch):
    return state + batch.sum(), {"sum": batch.sum()}


def test_figures_are_medians_with_their_spread_and_every_repeat_is_kept():
    result = measure(add_up, jnp.zeros(()), BATCHES, warmup=2, steps=6, repeats=5)
    assert len(result.samples_ms) == 5
    assert result.ms_per_step == pytest.approx(np.median(result.samples_ms))
    span = max(result.samples_ms) - min(result.samples_ms)
    assert result.spread == pytest.approx(span / result.ms_per_step)
    assert result.examples_per_s == pytest.approx(4 / (result.ms_per_step / 1000))


def test_the_clock_covers_work_that_is_only_queued():
    def slow_callback(x):
        time.sleep(0.02)
        return x

    @jax.jit
    def queued(state, batch):
        return jax.pure_callback(slow_callback, jax.ShapeDtypeStruct((), jnp.float32), state), ()

    result = measure(queued, jnp.float32(0), BATCHES, warmup=1, steps=3, repeats=2)
    assert result.ms_per_step >= 20


def test_state_and_metrics_are_those_after_all_steps():
    result = measure(add_up, jnp.zeros(()), BATCHES[1:2], warmup=3, steps=4, repeats=2)
    assert float(result.state) == 12 * (3 + 4 * 2)
    assert float(result.metrics["sum"]) == 12


def test_warm_up_goes_on_until_nothing_compiles():
    calls = []

    def compiles_for_five_calls(state, batch):
        calls.append(1)
        grown = jnp.zeros(10 + min(len(calls), 5))
        return jax.jit(lambda s, g: s + g.sum())(state, grown) if len(calls) < 5 else state, ()

    result = measure(compiles_for_five_calls, jnp.zeros(()), BATCHES, warmup=1, steps=3, repeats=1)
    assert result.compiles == 0
    assert result.compile_s > 0


def test_every_shape_among_the_batches_is_compiled_before_the_clock_starts():
    batches = [jnp.ones((4, 3)), jnp.ones((4, 3)), jnp.ones((2, 3))]
    result = measure(jax.jit(lambda s, b: (s + b.sum() * 2, ())), jnp.zeros(()), batches, warmup=1)
    assert result.compiles == 0


def test_a_compilation_inside_the_timed_region_is_counted():
    calls = []

    def compiles_late(state, batch):
        calls.append(1)
        if len(calls) == 4:
            return jax.jit(lambda s: s + 17)(state), ()
        return state, ()

    result = measure(compiles_late, jnp.zeros(()), BATCHES[:1], warmup=2, steps=3, repeats=1)
    assert result.compiles == 1


def test_a_step_that_always_compiles_is_refused():
    def always(state, batch):
        return jax.jit(lambda s: s + 1)(state), ()

    with pytest.raises(RuntimeError, match="still compiles"):
        measure(always, jnp.zeros(()), BATCHES)


def test_a_step_that_donates_its_state_can_be_timed():
    donating = jax.jit(lambda s, b: (s + b, ()), donate_argnums=0)
    result = measure(donating, jnp.zeros((4, 3)), BATCHES, warmup=1, steps=4, repeats=2)
    assert result.state.shape == (4, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batches": []}, "at least one batch"),
        ({"steps": 0}, "steps >= 1"),
        ({"repeats": 0}, "repeats >= 1"),
        ({"warmup": 0}, "warmup >= 1"),
        ({"batches": [jnp.float32(1)]}, "leading axis"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        measure(add_up, jnp.zeros(()), **{"batches": BATCHES, **arguments})


def test_a_step_that_returns_no_pair_is_named():
    with pytest.raises(TypeError, match=r"\(state, metrics\)"):
        measure(jax.jit(lambda s, b: s), jnp.zeros(()), BATCHES)


def test_examples_can_be_given_where_the_leading_axis_does_not_tell():
    result = measure(add_up, jnp.zeros(()), BATCHES, warmup=1, steps=3, repeats=1, examples=100)
    assert result.examples_per_s == pytest.approx(100 / (result.ms_per_step / 1000))


def test_one_step_at_a_time_is_in_flight_on_simulated_devices(monkeypatch):
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    batch = jax.device_put(jnp.ones((4, 3)), NamedSharding(mesh, P("data")))
    in_flight, most = 0, 0
    real_block = jax.block_until_ready

    def counted_block(tree):
        nonlocal in_flight
        in_flight = 0
        return real_block(tree)

    def counted_step(state, batch):
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        return add_up(state, batch)

    monkeypatch.setattr(timing.jax, "block_until_ready", counted_block)
    measure(counted_step, jnp.zeros(()), [batch], steps=23, repeats=2)
    assert most == 1


def test_three_hundred_data_parallel_steps_on_eight_simulated_devices_end():
    result = run_python(
        """
        import jax, optax
        import numpy as np
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        from course_utils.models import mlp
        from course_utils.timing import measure

        mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
        split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
        random = np.random.default_rng(0)
        images = random.integers(0, 255, (4096, 28, 28), dtype=np.uint8)
        labels = random.integers(0, 10, 4096, dtype=np.uint8)
        optimizer = optax.adamw(3e-3)
        timing = measure(
            mlp.make_train_step(mlp.loss_and_accuracy, optimizer),
            mlp.init_state(
                mlp.init_params(jax.random.key(0), (784, 256, 128, 10)), optimizer, whole
            ),
            mlp.make_batches(images, labels, 512, split),
            steps=100,
            repeats=3,
        )
        print(timing.compiles, len(timing.metrics["loss"].sharding.device_set))
        """,
        JAX_NUM_CPU_DEVICES="8",
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.split() == ["0", "8"]


def test_the_fraction_of_a_rate_compares_the_same_units():
    result = measure(add_up, jnp.zeros(()), BATCHES, warmup=1, steps=3, repeats=1)
    per_second = 1e6 / (result.ms_per_step / 1000)
    assert result.fraction_of(rate=2 * per_second, flops_per_step=1e6) == pytest.approx(0.5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_matmul_rate_is_a_positive_rate_in_each_dtype(dtype):
    assert 1e6 < matmul_rate(dtype, size=64) < 1e18


def test_the_matmul_rate_is_the_median_of_its_repeats(monkeypatch):
    repeats = (3.0, 1.0, 2.0, 9.0, 4.0)
    monkeypatch.setattr(timing, "matmul_rates", lambda dtype, size: repeats)
    assert matmul_rate(size=64) == 3.0


def test_the_rates_of_all_repeats_are_there():
    rates = matmul_rates(size=64)
    assert len(rates) == 5
    assert all(1e6 < rate < 1e18 for rate in rates)
