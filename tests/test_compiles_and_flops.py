"""The two counters: programs compiled, and matrix-multiplication work."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P
from processes import run_python

from course_utils.compiles import count_compiles
from course_utils.flops import matmul_flops


def test_a_new_program_counts_once_and_a_cached_one_not_at_all():
    step = jax.jit(lambda x: x * 3 + 1)
    x, longer = jnp.ones(5), jnp.ones(6)
    with count_compiles() as first:
        step(x)
    with count_compiles() as again:
        step(x)
    with count_compiles() as reshaped:
        step(longer)
    assert (first.count, again.count, reshaped.count) == (1, 0, 1)
    assert first.seconds > 0
    assert again.seconds == 0


def test_counting_ends_with_the_block_even_after_an_error():
    with pytest.raises(ZeroDivisionError), count_compiles() as compiles:
        raise ZeroDivisionError
    jax.jit(lambda x: x * 5)(1.0)
    assert compiles.count == 0


def test_nested_counters_see_the_same_program():
    with count_compiles() as outer:
        with count_compiles() as inner:
            jax.jit(lambda x: x - 7)(1.0)
        jax.jit(lambda x: x - 8)(1.0)
    assert (outer.count, inner.count) == (2, 1)


LEFT, RIGHT = jnp.ones((2, 3)), jnp.ones((3, 4))


def test_a_product_counts_two_operations_per_term():
    assert matmul_flops(lambda a, b: a @ b, LEFT, RIGHT) == 2 * 2 * 3 * 4


def test_a_batched_product_counts_every_batch():
    assert (
        matmul_flops(
            lambda a, b: jnp.einsum("bij,bjk->bik", a, b), jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
        )
        == 5 * 48
    )


def test_a_gradient_counts_forward_and_backward_products():
    def loss(b, a):
        return ((a @ b) ** 2).sum()

    assert matmul_flops(jax.jit(jax.grad(loss)), RIGHT, LEFT) == 2 * 48
    assert matmul_flops(jax.grad(loss, argnums=(0, 1)), RIGHT, LEFT) == 3 * 48


def test_a_scan_counts_every_iteration():
    def repeated(x, w):
        return jax.lax.scan(lambda h, _: (h @ w, None), x, None, length=7)[0]

    assert matmul_flops(repeated, jnp.ones((2, 3)), jnp.ones((3, 3))) == 7 * 2 * 2 * 3 * 3


def test_a_cond_counts_its_dearer_branch():
    def either(x, w):
        return jax.lax.cond(x.sum() > 0, lambda: x @ w @ w, lambda: x @ w)

    assert matmul_flops(either, jnp.ones((2, 3)), jnp.ones((3, 3))) == 2 * 36


def test_a_shard_map_counts_every_device():
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    product = jax.shard_map(
        lambda a, b: a @ b, mesh=mesh, in_specs=(P("data"), P()), out_specs=P("data")
    )
    assert matmul_flops(product, jnp.ones((8, 3)), RIGHT) == 2 * 8 * 3 * 4


def test_a_product_in_a_while_loop_is_an_error_and_a_loop_without_one_is_not():
    def unbounded(x, w):
        return jax.lax.while_loop(lambda h: h.sum() < 9, lambda h: h @ w, x)

    with pytest.raises(ValueError, match="while_loop"):
        matmul_flops(unbounded, jnp.ones((2, 3)), jnp.ones((3, 3)))
    assert matmul_flops(lambda x: jax.lax.while_loop(lambda h: h < 9, lambda h: h + 1, x), 0) == 0


def test_a_program_read_from_the_persistent_cache_still_counts_unless_it_is_switched_off(tmp_path):
    result = run_python(
        """
        import os, sys, jax
        from course_utils.compiles import count_compiles, without_compilation_cache

        hits = []
        jax.monitoring.register_event_listener(
            lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None
        )

        def compile_anew():
            with count_compiles() as compiles:
                jax.jit(lambda x: x * 3 + 1)(1.0)
            return compiles.count, len(hits)

        print(compile_anew(), compile_anew())
        with without_compilation_cache():
            print(compile_anew())
        print(compile_anew())
        """,
        JAX_COMPILATION_CACHE_DIR=str(tmp_path),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1",
    )
    assert result.stdout.splitlines() == ["(1, 0) (1, 1)", "(1, 1)", "(1, 2)"], result.stderr
