"""Exercise 00.2: what a matrix product takes."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp

from course_utils.compiles import count_compiles
from course_utils.exercises.definition import defined
from course_utils.exercises.forms import named, number, whole_number
from course_utils.flops import matmul_flops


@defined(
    "00.2",
    "Say what a matrix product takes",
    kind="predict",
    trains=("see why the first call", "know how fast this machine"),
    form=named(
        {
            "compiled": whole_number(),
            "operations": number(),
            "milliseconds": number("milliseconds"),
            "twice the size": number(),
        }
    ),
    hints=(
        "A program is compiled for the shapes that a function is called with, and kept. And each "
        "number of the product is a sum of how many products?",
        "A product of n x n matrices has n times n numbers, each the sum of n products: that makes n "
        "multiplications and as good as n additions. A GFLOP/s is a billion of them in a second.",
    ),
    right="That is what training is made of, so such a count tells beforehand what a step will take "
    "at the least. Lesson 01 counts a whole step in the same way.",
)
def product(answer: dict[str, float], size: int, gflops: float) -> Iterator[tuple[bool, str]]:
    """Compile and count, here and now; the rate is the one that this lesson has measured."""
    yield answer["compiled"] < 1, "Nothing runs before it is compiled."
    yield answer["compiled"] == 1, "The third call has another shape. Does the program fit it?"
    yield answer["compiled"] == 3, "The last matrix has a shape that has been there before."
    yield (
        answer["compiled"] != _compiled(size),
        "Not every call compiles: how many shapes are there?",
    )
    operations = _operations(size)
    for mistaken, message in (
        (size**3, "So many multiplications. They are added up, too."),
        (size**2, "So many numbers has the product. Each of them is a sum of many products."),
        (2 * size**2, "Each number of the product takes more than two operations."),
    ):
        yield _near(answer["operations"], mistaken), message
    yield not _near(answer["operations"], operations), "Count multiplications and additions of one."
    milliseconds = 1000 * operations / (gflops * 1e9)
    for mistaken, message in (
        (milliseconds / 1000, "These are seconds."),
        (milliseconds * 1e9, "The rate of the chart is in billions of operations a second."),
        (milliseconds * 1e6, "The rate is in billions a second, and the answer in milliseconds."),
        (1e6 / milliseconds, "That is upside down: divide operations by operations a second."),
    ):
        yield _near(answer["milliseconds"], mistaken), message
    yield (
        not _near(answer["milliseconds"], milliseconds),
        "The operations that you have counted, divided by the rate of one device with 32 bits, "
        '`rates["float32"]`.',
    )
    times = _operations(2 * size) / operations
    yield (
        answer["twice the size"] == times / 4,
        "Twice as many rows, and twice as many columns. Twice as many operations, really?",
    )
    yield (
        answer["twice the size"] == times / 2,
        "The product has so many times as many numbers. Does each take as long as before?",
    )
    yield not _near(answer["twice the size"], times), "Put 2 n in place of n into your count."


def _compiled(size: int) -> int:
    """Programs compiled by the four calls that the lesson asks about."""
    large, small = jnp.ones((size, size)), jnp.ones((size // 2, size // 2))
    square = jax.jit(lambda x: x @ x / x.shape[0])
    with count_compiles() as compiles:
        for matrix in (large, large, small, large):
            square(matrix).block_until_ready()
    return compiles.count


def _operations(size: int) -> int:
    square = jax.ShapeDtypeStruct((size, size), jnp.float32)
    return matmul_flops(jnp.matmul, square, square)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 0.01 * abs(b)  # whoever rounds, or counts n - 1 additions, isn't mistaken
