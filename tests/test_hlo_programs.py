"""collectives(compiled) against counts that follow from the program that was compiled."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from course_utils.hlo import Collective, collectives, totals

CLASSES = 10
LAB_GRADIENT_BYTES = 4 * 1_863_690
TWO_METRICS = 2 * 4


def mesh_of(**axes):
    count = int(np.prod(list(axes.values())))
    auto = (AxisType.Auto,) * len(axes)
    return jax.make_mesh(
        tuple(axes.values()), tuple(axes), axis_types=auto, devices=jax.devices()[:count]
    )


def shape_on(mesh, shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def shared_block_shapes(mesh, inputs, width):
    sizes = {"first": (inputs, width), "block": (width, width), "last": (width, CLASSES)}
    return {
        name: {"W": shape_on(mesh, size), "b": shape_on(mesh, size[1:])}
        for name, size in sizes.items()
    }


def shared_block_loss(params, batch, repeats):
    images, labels = batch
    first, shared, last = params["first"], params["block"], params["last"]

    def block(h, _):
        return 0.9 * h + 0.1 * jax.nn.gelu(h @ shared["W"] + shared["b"]), None

    hidden = jax.nn.gelu(images @ first["W"] + first["b"])
    hidden, _ = jax.lax.scan(block, hidden, None, length=repeats)
    logits = hidden @ last["W"] + last["b"]
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return loss, (logits.argmax(-1) == labels).mean()


def update(params, grads):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def compile_shared_block(devices, *, width=8, repeats=6, inputs=12, batch=4, by_hand=False):
    """The shared block's SGD step: left to XLA, or with one pmean of everything in shard_map."""
    mesh = mesh_of(data=devices)
    compute = jax.value_and_grad(
        functools.partial(shared_block_loss, repeats=repeats), has_aux=True
    )

    def left_to_xla(params, batch):
        metrics, grads = compute(params, batch)
        return update(params, grads), metrics

    def one_pmean(params, batch):
        metrics, grads = compute(jax.lax.pcast(params, "data", to="varying"), batch)
        grads, metrics = jax.lax.pmean((grads, metrics), "data")
        return update(params, grads), metrics

    step = left_to_xla
    if by_hand:
        specs = (P(), (P("data", None), P("data")))
        step = jax.shard_map(one_pmean, mesh=mesh, in_specs=specs, out_specs=P())
    images = shape_on(mesh, (batch * devices, inputs), "data")
    labels = shape_on(mesh, (batch * devices,), "data", dtype=jnp.int32)
    params = shared_block_shapes(mesh, inputs, width)
    return jax.jit(step).lower(params, (images, labels)).compile()


def weights_and_biases(*sizes):
    return sum(4 * (n * m + m) for n, m in sizes)


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_an_all_reduce_in_the_backward_loop_counts_once_for_each_repeat(devices):
    found = collectives(compile_shared_block(devices, repeats=6))
    outside = weights_and_biases((12, 8), (8, CLASSES)) + TWO_METRICS
    assert set(found) == {
        Collective("all-reduce", 6, weights_and_biases((8, 8)), devices),
        Collective("all-reduce", 1, outside, devices),
    }


def test_at_the_labs_size_a_step_executes_129_all_reduces_of_541_megabytes():
    lab = {"width": 1024, "repeats": 128, "inputs": 784, "batch": 1024}
    found = totals(collectives(compile_shared_block(8, **lab)))
    in_the_loop = weights_and_biases((1024, 1024))
    rest = LAB_GRADIENT_BYTES - in_the_loop + TWO_METRICS
    assert found == (129, 128 * in_the_loop + rest)
    assert round(found.bytes / 1e6) == 541


@pytest.mark.parametrize("devices", [2, 3, 4, 6, 8])
def test_one_pmean_of_everything_is_one_all_reduce_of_gradients_and_metrics(devices):
    payload = weights_and_biases((12, 8), (8, 8), (8, CLASSES)) + TWO_METRICS
    found = collectives(compile_shared_block(devices, by_hand=True))
    assert found == [Collective("all-reduce", 1, payload, devices)]


def test_on_one_device_a_step_moves_nothing():
    assert totals(collectives(compile_shared_block(1))).bytes == 0
    assert totals(collectives(compile_shared_block(1, by_hand=True))).bytes == 0


def compile_manual(program, mesh, shape=(16, 16), spec=("a", "b"), dtype=jnp.float32):
    mapped = jax.shard_map(
        program, mesh=mesh, in_specs=P(*spec), out_specs=P(mesh.axis_names), check_vma=False
    )
    return jax.jit(mapped).lower(shape_on(mesh, shape, *spec, dtype=dtype)).compile()


# A float32 array of (16, 16) on a (2, 4) mesh: each device holds (8, 4).
LOCAL_BYTES = 8 * 4 * 4
AXES = {"a": 2, "b": 4, ("a", "b"): 8, ("b", "a"): 8}


PROGRAMS = {
    "all-reduce": lambda x, axes, ring: jax.lax.psum(x, axes),
    "all-gather": lambda x, axes, ring: jax.lax.all_gather(x, axes, tiled=True),
    "reduce-scatter": lambda x, axes, ring: jax.lax.psum_scatter(x, axes, tiled=True),
    "all-to-all": lambda x, axes, ring: jax.lax.all_to_all(x, axes, 0, 0, tiled=True),
    "collective-permute": lambda x, axes, ring: jax.lax.ppermute(x, axes, ring),
}


# JAX 0.12 takes the axes of a permute in the mesh's order only.
CASES = [
    (kind, axes)
    for kind, axes in itertools.product(PROGRAMS, AXES)
    if (kind, axes) != ("collective-permute", ("b", "a"))
]


@pytest.mark.parametrize(("kind", "axes"), CASES)
def test_each_collective_over_part_of_a_mesh_has_its_group_and_payload(kind, axes):
    devices = AXES[axes]
    ring = [(i, (i + 1) % devices) for i in range(devices)]
    program = functools.partial(PROGRAMS[kind], axes=axes, ring=ring)
    payload = LOCAL_BYTES * (devices if kind == "all-gather" else 1)
    found = collectives(compile_manual(program, mesh_of(a=2, b=4)))
    assert found == [Collective(kind, 1, payload, devices)]


@pytest.mark.parametrize("devices", [2, 3, 6])
def test_on_a_mesh_of_one_axis_the_group_is_the_mesh(devices):
    ring = [(i, (i + 1) % devices) for i in range(devices)]
    compiled = compile_manual(
        lambda x: jax.lax.ppermute(jax.lax.psum(x, "a"), "a", ring),
        mesh_of(a=devices),
        shape=(devices, 5),
        spec=("a",),
    )
    assert set(collectives(compiled)) == {
        Collective("all-reduce", 1, 20, devices),
        Collective("collective-permute", 1, 20, devices),
    }


def test_groups_along_several_axes_of_a_mesh_multiply():
    mesh = mesh_of(x=2, y=2, z=2)
    for axes in ("y", ("x", "z"), ("z", "x"), ("x", "y", "z")):
        compiled = compile_manual(
            lambda v, axes=axes: jax.lax.psum(v, axes), mesh, shape=(8,), spec=(("x", "y", "z"),)
        )
        assert [c.group_size for c in collectives(compiled)] == [2 ** len(axes)]


def test_sharded_operands_of_a_product_cost_what_their_placement_says():
    mesh = mesh_of(a=2, b=4)
    by_rows, by_columns = (shape_on(mesh, (16, 16), *s) for s in (("a", None), (None, "b")))
    contracted = [shape_on(mesh, (16, 16), *spec) for spec in ((None, "b"), ("b", None))]
    product = jax.jit(lambda left, right: left @ right)
    assert collectives(product.lower(by_rows, by_columns).compile()) == []
    assert collectives(product.lower(*contracted).compile()) == [
        Collective("all-reduce", 1, 16 * 16 * 4, 4)
    ]


def scanned(body, length):
    return lambda x: jax.lax.scan(lambda h, _: (body(h), None), x, None, length=length)[0]


def test_nested_loops_multiply():
    inner = scanned(lambda x: jax.lax.psum(x, "b") * 0.5, 3)
    outer = scanned(lambda x: inner(x) + jax.lax.psum(x, "a"), 5)
    assert collectives(compile_manual(scanned(outer, 2), mesh_of(a=2, b=4))) == [
        Collective("all-reduce", 2 * 5 * 3, LOCAL_BYTES, 4),
        Collective("all-reduce", 2 * 5, LOCAL_BYTES, 2),
    ]


def test_of_the_branches_of_a_cond_only_the_dearest_counts():
    def program(x):
        twice = scanned(lambda x: jax.lax.psum(x, "b") * 0.5, 2)
        return jax.lax.cond(x[0, 0] > 0, twice, lambda x: jax.lax.psum(x, "a"), x)

    found = collectives(compile_manual(program, mesh_of(a=2, b=4)))
    assert found == [Collective("all-reduce", 2, LOCAL_BYTES, 4)]


def test_of_many_branches_of_a_switch_too():
    def program(x):
        branches = [lambda x, a=a: jax.lax.psum(x[: len(a)], a) for a in (("a",), ("a", "b"))]
        padded = [lambda x, b=b: x.at[:2].add(b(x).sum()) for b in branches]
        return jax.lax.switch(x[0, 0].astype(jnp.int32), [*padded, lambda x: x], x)

    found = collectives(compile_manual(program, mesh_of(a=2, b=4)))
    assert found == [Collective("all-reduce", 1, 2 * 4 * 4, 8)]


def test_a_while_loop_of_unknown_length_is_an_error_only_with_a_collective_in_it():
    def until(body):
        return lambda x: jax.lax.while_loop(lambda x: x[0, 0] < 9, body, x)

    mesh = mesh_of(a=2, b=4)
    with pytest.raises(ValueError, match=r"line \d+, while .*isn't known before it runs"):
        collectives(compile_manual(until(lambda x: jax.lax.psum(x, "a")), mesh))
    assert collectives(compile_manual(until(lambda x: x + 1), mesh)) == []


@pytest.mark.parametrize("devices", [1, 8])
def test_a_group_of_one_moves_no_bytes(devices):
    compiled = compile_manual(lambda x: jax.lax.psum(x, "a"), mesh_of(a=1, b=devices))
    found = collectives(compiled)
    assert [(c.bytes, c.group_size) for c in found] == [(0, 1)] * len(found)


def test_a_permute_that_keeps_everything_moves_no_bytes():
    stay = [(i, i) for i in range(4)]
    compiled = compile_manual(lambda x: jax.lax.ppermute(x, "b", stay), mesh_of(a=2, b=4))
    assert totals(collectives(compiled)).bytes == 0


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint16", "bool", "complex64"])
def test_bytes_follow_the_dtype(dtype):
    gather = functools.partial(jax.lax.all_gather, axis_name="b", tiled=True)
    compiled = compile_manual(gather, mesh_of(a=2, b=4), dtype=jnp.dtype(dtype))
    payload = 4 * 8 * 4 * jnp.dtype(dtype).itemsize
    assert collectives(compiled) == [Collective("all-gather", 1, payload, 4)]


def test_a_program_on_one_device_has_none():
    assert collectives(jax.jit(lambda x: x @ x).lower(jnp.ones((2, 2))).compile()) == []


def test_anything_but_a_compiled_program_is_refused_with_what_to_pass():
    lowered = jax.jit(lambda x: x + 1).lower(1.0)
    with pytest.raises(ValueError, match=r"StableHLO.*compile it first.*lower\(...\).compile"):
        collectives(lowered)
    for wrong in (lambda x: x, None, jax.jit(lambda x: x)):
        with pytest.raises(TypeError, match=r"compiled program"):
            collectives(wrong)
