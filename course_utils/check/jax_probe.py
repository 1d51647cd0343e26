"""What the checks run in a process of its own: `python -m course_utils.check.jax_probe devices`.

Prints one line of JSON. Nothing here is imported by anything else: it starts JAX.
"""

import json
import sys
import time


def devices() -> dict:
    """What JAX sees."""
    import jax

    found = jax.devices()
    return {"count": len(found), "platform": found[0].platform, "kind": found[0].device_kind}


def matmul(seconds: float) -> dict:
    """Multiply on every device for some time: right results, and TFLOP/s of each."""
    import jax
    import jax.numpy as jnp

    size = 1024 if jax.default_backend() == "cpu" else 8192
    square = jax.jit(lambda x: x @ x)
    ones = [jax.device_put(jnp.ones((size, size)), device) for device in jax.devices()]
    right = all(bool((square(x) == size).all()) for x in ones)
    done, since = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - since) < seconds or not done:
        jax.block_until_ready([square(x) for x in ones])
        done += 1
    return {"right": right, "tflops": 2 * size**3 * done / elapsed / 1e12, "devices": len(ones)}


def all_reduce() -> dict:
    """Sum over all devices what each holds, and compare with the sum."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    n = len(jax.devices())
    mesh = jax.make_mesh((n,), ("devices",))
    add = jax.shard_map(
        lambda x: jax.lax.psum(x, "devices"), mesh=mesh, in_specs=P("devices"), out_specs=P()
    )
    numbers = jnp.repeat(jnp.arange(1.0, n + 1), 1_000_000)
    placed = jax.device_put(numbers, jax.NamedSharding(mesh, P("devices")))
    total = jax.jit(add)(placed)
    return {"right": bool((total == n * (n + 1) / 2).all()), "devices": n}


if __name__ == "__main__":
    name, *given = sys.argv[1:]
    ask = {"devices": devices, "matmul": matmul, "all_reduce": all_reduce}[name]
    print(json.dumps(ask(*map(float, given))))
