"""Answers to the exercises of lesson 03."""

import numpy as np
from exercise_answers import Answers

from course_utils.fashion_mnist import CLASS_NAMES


def batches_of(images, size):
    missing = -len(images) % size
    padded = np.pad(images, ((0, missing), (0, 0)))
    mask = np.arange(len(padded)) < len(images)
    return zip(padded.reshape(-1, size, 2), mask.reshape(-1, size), strict=True)


def average(score, images, batch_size):
    sums = [((score(x) * mask).sum(), mask.sum()) for x, mask in batches_of(images, batch_size)]
    total, count = np.sum(sums, axis=0)
    return total / count


def whole_batches_only(score, images, batch_size):
    whole = images[: len(images) // batch_size * batch_size].reshape(-1, batch_size, 2)
    return np.mean([score(batch).mean() for batch in whole])


def mean_of_means(score, images, batch_size):
    means = [(score(x) * m).sum() / m.sum() for x, m in batches_of(images, batch_size)]
    return np.mean(means)


def padding_scored(score, images, batch_size):
    return np.mean([score(x).mean() for x, _ in batches_of(images, batch_size)])


def padding_counted(score, images, batch_size):
    return np.mean([(score(x) * m).mean() for x, m in batches_of(images, batch_size)])


def padding_in_the_sum(score, images, batch_size):
    return sum(score(x).sum() for x, _ in batches_of(images, batch_size)) / len(images)


def never_divided(score, images, batch_size):
    return sum((score(x) * m).sum() for x, m in batches_of(images, batch_size))


def short_last_batch(score, images, batch_size):
    parts = [images[i : i + batch_size] for i in range(0, len(images), batch_size)]
    return sum(score(part).sum() for part in parts) / len(images)


def one_score_per_image(score, images, batch_size):
    return score(images)


def never_called(score, images, batch_size):
    return images.sum(axis=1).mean()


def something_else(score, images, batch_size):
    return float(score(images[:batch_size]).max())


def returns_nothing(score, images, batch_size):
    average(score, images, batch_size)


def misspelt(score, images, batch_size):
    return score(images).maen()


def mapped_answers() -> Answers:
    right = {"(None, 0)": (5, 32, 10), "(0, None)": (3, 32, 10)}
    right |= {"(0, 0)": None, "both": (3, 5, 32, 10)}
    return Answers(
        right=right,
        wrong={
            "`(None, 0)`: that is what one call": right | {"(None, 0)": (32, 10)},
            "`(None, 0)`: over which argument": right | {"(None, 0)": (3, 32, 10)},
            "`(0, None)` works": right | {"(0, None)": None},
            "ends before the other": right | {"(0, 0)": (3, 32, 10)},
            "another order": right | {"both": (5, 3, 32, 10)},
            "`both`: each `vmap` adds one axis": right | {"both": (15, 32, 10)},
        },
        context={"models": 3, "batches": 5, "rows": 32},
        secret=("(5, 32, 10)", "(3, 32, 10)", "(32, 10)"),
    )


def average_answers() -> Answers:
    return Answers(
        right=average,
        wrong={
            "they fill no batch": whole_batches_only,
            "a mean of means gives": mean_of_means,
            "have been scored and counted": padding_scored,
            "still counted as images": padding_counted,
            "their scores are in the sum": padding_in_the_sum,
            "the sum of all scores": never_divided,
            "a shape of its own": short_last_batch,
            "Return one number": one_score_per_image,
            "was never called": never_called,
            "isn't the mean of their scores": something_else,
            "returns nothing": returns_nothing,
        },
        secret=("mask", "np.pad"),
        raises={".maen()": misspelt},
    )


def matrix_answers() -> Answers:
    # 100 images of each class; of the shirts, 60 are found, and 25 are taken for T-shirts.
    matrix = 100 * np.eye(10, dtype=int)
    matrix[6] = [25, 0, 5, 0, 10, 0, 60, 0, 0, 0]
    matrix[2, [2, 6]] = [80, 20]
    right = {"shirts not found": 40, "wrongly called shirts": 20, "recall": 0.6, "precision": 0.75}
    right |= {"mostly taken for": CLASS_NAMES[0]}
    swapped = {"shirts not found": 20, "wrongly called shirts": 40}
    return Answers(
        right=right,
        wrong={
            "Row and column are swapped": right | swapped,
            "'shirts not found': the diagonal": right | {"shirts not found": 100},
            "'wrongly called shirts': add up": right | {"wrongly called shirts": 7},
            "the wrong way round": right | {"recall": 0.75, "precision": 0.6},
            "recall: as a part of 1": right | {"recall": 60},
            "precision: the hits": right | {"precision": 0.5},
            "about those that aren't": right | {"mostly taken for": "Shirt"},
            "most often called a shirt": right | {"mostly taken for": CLASS_NAMES[2]},
            "another class is larger": right | {"mostly taken for": CLASS_NAMES[4]},
        },
        context={"matrix": matrix},
        secret=("0.75", CLASS_NAMES[0]),
    )


def answers() -> dict[str, Answers]:
    return {"03.1": mapped_answers(), "03.2": average_answers(), "03.3": matrix_answers()}
