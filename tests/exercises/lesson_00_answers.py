"""Answers to the exercises of lesson 00."""

from exercise_answers import Answers

from course_utils.check.row import Row


def look_answers() -> Answers:
    statuses = ("OK", "WARN", "OK", "OK")
    right = {"not OK": 1, "stops": "FAIL", "SIZE": "old"}
    return Answers(
        right=right,
        wrong={
            "So many rows say [OK]": right | {"not OK": 3},
            "Count again": right | {"not OK": 4},
            "needs nothing, so": right | {"stops": "OK"},
            "Which is worse": right | {"stops": "WARN"},
            "Nothing has made it anew": right | {"SIZE": "new"},
        },
        context={"rows": [Row(status, "a probe", "something") for status in statuses]},
        secret=("FAIL",),
    )


def product_answers() -> Answers:
    size, gflops = 64, 50.0
    right = {"compiled": 2, "operations": 2 * size**3, "twice the size": 8}
    right["milliseconds"] = milliseconds = 1000 * 2 * size**3 / (gflops * 1e9)
    return Answers(
        right=right,
        wrong={
            "Nothing runs before": right | {"compiled": 0},
            "Does the program fit": right | {"compiled": 1},
            "has been there before": right | {"compiled": 3},
            "how many shapes": right | {"compiled": 4},
            "So many multiplications": right | {"operations": size**3},
            "So many numbers": right | {"operations": size**2},
            "more than two operations": right | {"operations": 2 * size**2},
            "Count multiplications": right | {"operations": 4 * size**3},
            "These are seconds": right | {"milliseconds": milliseconds / 1000},
            "billions of operations a second": right | {"milliseconds": milliseconds * 1e9},
            "and the answer in milliseconds": right | {"milliseconds": milliseconds * 1e6},
            "upside down": right | {"milliseconds": 1e6 / milliseconds},
            "divided by the rate": right | {"milliseconds": 5 * milliseconds},
            "Twice as many operations, really": right | {"twice the size": 2},
            "as long as before": right | {"twice the size": 4},
            "Put 2 n in place": right | {"twice the size": 16},
        },
        context={"size": size, "gflops": gflops},
        secret=("2 n^3", "2 * n", "eight"),
    )


def answers() -> dict[str, Answers]:
    return {"00.1": look_answers(), "00.2": product_answers()}
