"""Which gaps of an answer are still open: a gap is written `...`."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any


def open_gaps(answer: Any) -> tuple[list[str], int]:
    """Names of the open gaps of an answer, and how many gaps it has, open or filled.

    A gap is `...` itself, as a value of a dict, an item of a list or tuple, or anywhere in a
    function's code but in an index, where Python gives it a meaning.

    Example:
        open_gaps({"rows": 3, "columns": ...})  # (["columns"], 2)
    """
    if isinstance(answer, Mapping):
        parts = [(str(name), value) for name, value in answer.items()]
    elif isinstance(answer, list | tuple):
        parts = [(f"number {place}", value) for place, value in enumerate(answer, start=1)]
    else:
        parts = [("the answer", answer)]
    return [name for name, value in parts if _is_open(value)], len(parts)


def _is_open(value: Any) -> bool:
    return value is ... or (callable(value) and _code_has_gap(value))


def _code_has_gap(function: Any) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # without its source, or a lambda amid a line
        return False
    indices = (node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    meant = {id(node) for index in indices for node in ast.walk(index)}
    return any(
        isinstance(node, ast.Constant) and node.value is ... and id(node) not in meant
        for node in ast.walk(tree)
    )
