"""Solutions of lesson 03: each cell replaces the lesson's cell of the same tag."""

# %% [markdown] exercise:03.1
# One call returns (32, 10). Mapping over the batches puts their number in front, mapping over the models theirs.
# Three models and five batches can't be walked through in step; one loop within the other makes all pairs.

# %% exercise:03.1
returned = {
    "(None, 0)": (5, 32, 10),  # one model, all batches
    "(0, None)": (3, 32, 10),  # all models, one batch
    "(0, 0)": None,  # all models, all batches
    "both": (3, 5, 32, 10),  # vmap(vmap(logits, (None, 0)), (0, None)), all models, all batches
}

exercise("03.1").check(returned, models=3, batches=5, rows=32)

# %% [markdown] exercise:03.2
# The last batch is filled up, and a mask says which rows are images. The sums of scores and of masks are added
# up over the batches, and divided once, so that each image has the same weight.


# %% exercise:03.2
def average(score, images, batch_size):
    """Mean of `score` over all images; it is only ever called with `batch_size` of them."""
    total = count = 0.0
    missing = -len(images) % batch_size
    padded = np.pad(images, [(0, missing)] + [(0, 0)] * (images.ndim - 1))
    mask = np.arange(len(padded)) < len(images)
    for start in range(0, len(padded), batch_size):
        rows = slice(start, start + batch_size)
        total += float((score(padded[rows]) * mask[rows]).sum())
        count += float(mask[rows].sum())
    return total / count


exercise("03.2").check(average)

# %% [markdown] exercise:03.3
# A row holds the images of a class, a column those that were given its name; the diagonal is in both, and what is
# left of either are mistakes. Hits over the row are recall, hits over the column are precision.

# %% exercise:03.3
row, column, hits = matrix[6].sum(), matrix[:, 6].sum(), matrix[6, 6]
mistaken = np.where(np.arange(classes) == 6, -1, matrix[6])
reading = {
    "shirts not found": row - hits,
    "wrongly called shirts": column - hits,
    "recall": hits / row,
    "precision": hits / max(column, 1),
    "mostly taken for": data.class_names[int(np.argmax(mistaken))],
}

exercise("03.3").check(reading, matrix=matrix)
