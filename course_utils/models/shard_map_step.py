"""The data-parallel step with one explicit all-reduce, as lesson 05_shard_map builds it."""

from collections.abc import Callable
from typing import Any

import jax
import optax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def make_shard_map_step(
    loss_fn: Callable[[Any, Any], tuple[jax.Array, jax.Array]],
    optimizer: optax.GradientTransformation,
    mesh: Mesh,
) -> Callable[[Any, Any], tuple[Any, dict[str, jax.Array]]]:
    """Jit a data-parallel step over the mesh's axis 'data', with one all-reduce.

    The step takes `(params, optimizer state), batch`, with params and optimizer state replicated
    and a batch of images (n, 784) and labels (n,) split over 'data'; it returns the new state and
    loss, accuracy and gradient norm of the whole batch, all replicated.

    Args:
        loss_fn: (params, batch) -> (mean loss, accuracy) of the examples it is given.
        optimizer: any Optax optimizer; it runs on every device, on the same averaged gradients.
        mesh: with an axis 'data' that divides the batch.
    """

    def local_step(state: Any, batch: Any) -> tuple[Any, dict[str, jax.Array]]:
        params, opt_state = state
        varying = jax.lax.pcast(params, "data", to="varying")
        local, grads = jax.value_and_grad(loss_fn, has_aux=True)(varying, batch)
        (loss, accuracy), grads = jax.lax.pmean((local, grads), "data")
        updates, opt_state = optimizer.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        metrics = {"loss": loss, "accuracy": accuracy, "gradient norm": optax.tree.norm(grads)}
        return (params, opt_state), metrics

    specs = (P(), (P("data", None), P("data")))
    return jax.jit(jax.shard_map(local_step, mesh=mesh, in_specs=specs, out_specs=(P(), P())))
