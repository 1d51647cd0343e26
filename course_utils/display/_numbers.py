"""One rule for how a value reads: see `format_value`."""

import math
import re
from collections.abc import Iterable
from numbers import Integral, Real

_NUMERIC_TEXT = re.compile(r"[<>≈~±]?\s*[-+\u2212]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?\s*[%\u00d7x]?")


def scalar(value: object) -> object:
    """Return a NumPy or JAX scalar (0-d array) as the Python value it holds, others unchanged.

    Example:
        scalar(jnp.float32(0.5))  # 0.5
    """
    if getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None)):
        return value.item()
    return value


def format_value(value: object) -> str:
    """Return `value` as a reader wants it.

    str as given; bool yes or no; None a dash; int with thousands separators; float with four
    significant digits, from 1,000 on as a whole number with separators, and in powers of ten
    from 1e9 on and below 1e-4; others through `str`. NumPy and JAX scalars count as Python's.

    Example:
        format_value(235146)  # '235,146'
        format_value(0.123456)  # '0.1235'
    """
    value = scalar(value)
    if value is None:
        return "\u2013"  # an en dash
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return _format_float(float(value))
    return str(value)


def _format_float(number):
    if 999.95 <= abs(number) < 1e9:
        return f"{number:,.0f}"
    return f"{number + 0.0:.4g}"  # + 0.0: no "-0"


def format_column(values: Iterable[object]) -> list[str]:
    """Return the values of one column as text; its floats share their number of decimals.

    Only floats of similar size do (the largest less than 100 times the smallest): otherwise
    each keeps its own four significant digits.
    """
    values = [scalar(value) for value in values]
    texts = [format_value(value) for value in values]
    floats = [i for i, value in enumerate(values) if _is_float(value) and value != 0]
    sizes = [abs(values[i]) for i in floats]
    if not sizes or max(sizes) >= 100 * min(sizes) or any("e" in texts[i] for i in floats):
        return texts
    decimals = max(len(texts[i].partition(".")[2]) for i in floats)
    return [
        f"{value:,.{decimals}f}" if _is_float(value) else text
        for value, text in zip(values, texts, strict=True)
    ]


def _is_float(value):
    return isinstance(value, float) and math.isfinite(value)


def is_numeric(values: Iterable[object]) -> bool:
    """Whether a column reads as numbers: numbers, or text such as "1.5", "12 %" or "3.1x".

    One that only misses its values does, too: it stands where figures stand on another machine.
    """
    values = list(map(scalar, values))
    shown = [value for value in values if value is not None and value != ""]
    return all(map(_reads_as_number, shown)) if shown else None in values


def _reads_as_number(value):
    if isinstance(value, str):
        return _NUMERIC_TEXT.fullmatch(value.strip()) is not None
    return isinstance(value, Real) and not isinstance(value, bool)
