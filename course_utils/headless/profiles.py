"""The profiles of a lesson, read from its source: a misspelt one is refused before anything runs."""

import ast
from typing import Any

NAME, CHOOSES = "PROFILES", "choose_profile"


def profiles(cells: list[dict[str, Any]]) -> tuple[str, ...]:
    """The keys of the lesson's PROFILES, in order; none where the source alone doesn't tell.

    It tells if PROFILES is assigned once, as a dict whose keys are written out, and is then only
    handed to choose_profile: nothing else can have changed it.
    """
    code = ("".join(cell.get("source", "")) for cell in cells if cell.get("cell_type") == "code")
    try:
        trees = [ast.parse(source) for source in code if NAME in source]
    except (SyntaxError, ValueError):  # a magic of IPython, say
        return ()
    nodes = [node for tree in trees for node in ast.walk(tree)]
    dicts = [statement.value for tree in trees for statement in tree.body if _assigns(statement)]
    mentions = sum(isinstance(node, ast.Name) and node.id == NAME for node in nodes)
    if len(dicts) != 1 or mentions != 1 + sum(map(_handed_over, nodes)):
        return ()
    return _keys(dicts[0])


def _assigns(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    (target,) = statement.targets
    return isinstance(target, ast.Name) and target.id == NAME


def _handed_over(node: ast.AST) -> int:
    """How often a call of choose_profile is given PROFILES."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == CHOOSES):
        return 0
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return sum(isinstance(value, ast.Name) and value.id == NAME for value in given)


def _keys(value: ast.expr) -> tuple[str, ...]:
    keys = [getattr(key, "value", None) for key in getattr(value, "keys", ())]
    return tuple(keys) if all(isinstance(key, str) for key in keys) else ()
