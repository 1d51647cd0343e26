"""Solutions of lesson 08: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:08.1
# Rows are divided by the data axis, columns by the model axis; what names only one repeats along the other.
# Sums along a divided axis are sent: the entries of a column, the inner axis of a product.

# %% exercise:08.1
rows_over, columns_over = mesh.shape["data"], mesh.shape["model"]
sends = "sends" if rows_over > 1 else "nothing"
predictions = {
    "piece": (size // rows_over, size // columns_over),  # of (size, size), P("data", "model")
    "copies": columns_over,  # devices that hold the same piece of P("data", None)
    "row sums": "nothing",  # x.sum(axis=1), x by rows
    "column sums": sends,  # x.sum(axis=0), x by rows
    "columns, then rows": sends,  # x @ a @ b: x whole, a by columns, b by rows
    "columns, then columns": sends,  # x @ a @ b: x whole, a and b by columns
}

exercise("08.1").check(predictions, mesh=mesh, size=size)

# %% [markdown] exercise:08.2
# The rows are the first axis of a matrix. Biases have one axis only, and the optimizer's count has none: both
# are small, and stay whole.


# %% exercise:08.2
def over_rows(x, mesh):
    """Rows of a matrix split over the mesh's model axis, where they divide by it."""
    if x.ndim == 2 and x.shape[0] % mesh.shape["model"] == 0:
        return P("model")
    return P()


given = {"loss_fn": loss_fn, "params": params, "batch": jax.device_get(batches_for(mesh)[0])}
exercise("08.2").check(over_rows, mesh=mesh, **given)

# %% [markdown] exercise:08.3
# Three float32 for each parameter are 12 bytes. Whatever fits whole is replicated; where a layer fits, its
# state is divided; where it doesn't, the layer is. Over a slow link, only what lies between groups is sent.

# %% exercise:08.3
models = {
    "small": {"layers": 24, "width": 4096, "link GB/s": 200},
    "deep": {"layers": 96, "width": 8192, "link GB/s": 200},
    "wide": {"layers": 2, "width": 65_536, "link GB/s": 200},
    "far apart": {"layers": 96, "width": 8192, "link GB/s": 1},
}
state_gb = 96 * 8192**2 * 12 / 1e9
choices = {"GB, replicated": state_gb, "GB, fully sharded": state_gb / 8}
choices |= {"small": "data", "deep": "FSDP", "wide": "tensor", "far apart": "pipeline"}

exercise("08.3").check(choices, models=models, devices=8, memory=24)
