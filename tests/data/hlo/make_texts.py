"""Make the compiled texts beside this file: `python make_texts.py cpu` or `... gpu`.

The GPU's texts come from XLA's own GPU compiler, for eight NVIDIA L4, on a machine without any:
beside jax install jax-cuda12-plugin and jax-cuda12-pjrt of its version, without their
dependencies, and nvidia-cuda-nvcc-cu12. Run once for each JAX version.
"""

import os
import re
import sys
from pathlib import Path

os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "8"}
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # there is no CUDA to ask for its version

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

L4 = """
platform_name: "CUDA"  device_description_str: "NVIDIA L4"
dnn_version_info { major: 9 minor: 8 }
gpu_device_info {
  cuda_compute_capability { major: 8 minor: 9 }
  threads_per_block_limit: 1024  threads_per_warp: 32  threads_per_core_limit: 1536
  shared_memory_per_block: 49152  shared_memory_per_block_optin: 101376
  shared_memory_per_core: 102400  registers_per_core_limit: 65536  registers_per_block_limit: 65536
  core_count: 58  fpus_per_core: 128  clock_rate_ghz: 2.04  l2_cache_size: 50331648
  block_dim_limit_x: 2147483647  block_dim_limit_y: 65535  block_dim_limit_z: 65535
  memory_bandwidth: 300096000000  device_memory_size: 23642046464
}
"""


def devices_of(kind):
    if kind == "cpu":
        return jax.devices()
    from jax.experimental import topologies

    return topologies.get_topology_desc(
        "eight L4", platform="cuda", target_config=L4, topology="1x1x8"
    ).devices


def placed(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


def shared_block(devices):
    """An SGD step through a scan of five equal blocks, on sharded batches: XLA's all-reduces."""
    mesh = Mesh(np.array(devices), ("data",))

    def loss(params, x):
        first, weight, bias = params

        def block(h, _):
            return (jnp.tanh(h @ weight + bias), None)

        return (jax.lax.scan(block, x @ first, None, length=5)[0] ** 2).mean()

    def step(params, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    params = tuple(placed(mesh, shape) for shape in ((3, 4), (4, 4), (4,)))
    return jax.jit(step).lower(params, placed(mesh, (16, 3), "data"))


def subgroups(devices):
    """Sums over parts of a (2, 4) mesh: in nested scans, and in the branches of a cond."""
    mesh = Mesh(np.array(devices).reshape(2, 4), ("a", "b"))

    def outer(x, _):
        def inner(y, _):
            return (jax.lax.psum(y, "b") * 0.5, None)

        return jax.lax.scan(inner, x, None, length=3)[0] + jax.lax.psum(x, "a"), None

    def program(x):
        x, _ = jax.lax.scan(outer, x, None, length=5)

        def twice(x):
            return jax.lax.psum(jax.lax.psum(x, "b") * x, "b")

        def once(x):
            return jax.lax.psum(x, "b") * 2

        return jax.lax.cond(jax.lax.psum(x.sum(), ("a", "b")) > 0, twice, once, x)

    return manual(program, mesh, P("a", "b"), P("a", "b")).lower(placed(mesh, (8, 8), "a", "b"))


def exchanges(devices):
    """One collective of each other kind, on local arrays of (8, 4) float32."""
    mesh = Mesh(np.array(devices).reshape(2, 4), ("a", "b"))

    def program(x):
        ring = [(i, (i + 1) % 4) for i in range(4)]
        return (
            jax.lax.all_gather(x, "b", tiled=True),
            jax.lax.psum_scatter(x * 2, "a", tiled=True),
            jax.lax.ppermute(x * 3, "b", ring),
            jax.lax.all_to_all(x * 5, ("a", "b"), 0, 0, tiled=True),
        )

    return manual(program, mesh, P("a", "b"), P(("a", "b"))).lower(placed(mesh, (16, 16), "a", "b"))


def manual(program, mesh, in_specs, out_specs):
    return jax.jit(
        jax.shard_map(program, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    )


def main(kind):
    version = ".".join(jax.__version__.split(".")[:2])
    devices = devices_of(kind)
    for make in (shared_block, subgroups, exchanges):
        text = make(devices).compile().as_text()
        # Where the program stood on the disk of whoever ran this is of no interest.
        text = re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*", "", text)
        text = re.sub(r"\n{2,}", "\n\n", text)
        made = f"// Made by make_texts.py {kind}, JAX {jax.__version__}: {make.__doc__}\n"
        Path(__file__).with_name(f"{kind}_{version}_{make.__name__}.hlo").write_text(made + text)


if __name__ == "__main__":
    main(*sys.argv[1:])
