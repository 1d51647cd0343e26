"""The statement at which a cell failed, as its traceback tells it."""

import ast
import re
from typing import Any

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WHERE = re.compile(r"Cell In\[\d+\], line (\d+)")
CHAINED = re.compile(r"The above exception was the|During handling of the above exception")
LONGEST = 80


def failing_line(cell: dict[str, Any]) -> str | None:
    """The failing statement of a cell on one line, or its line where it contains others.

    None where the outputs don't tell, or tell of a line that the cell doesn't have.
    """
    errors = [o for o in cell.get("outputs", ()) if o.get("output_type") == "error"]
    if not errors:
        return None
    told = ANSI.sub("", "\n".join(errors[-1].get("traceback", ())))
    # The exception that ended the cell stands last, behind its causes; its first frame is the cell
    # itself, those below it are what the cell called.
    found = WHERE.search(CHAINED.split(told)[-1])
    lines = "".join(cell["source"]).splitlines()
    if not found or not 1 <= int(found[1]) <= len(lines):
        return None
    number = int(found[1])
    return _whole(lines, number)[:LONGEST] or None


def _whole(lines: list[str], number: int) -> str:
    """The simple statement that holds this line, joined; the line alone where there is none."""
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except (SyntaxError, ValueError):  # a magic of IPython, or what failed is the syntax
        return lines[number - 1].strip()
    for node in nodes:
        simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
        if simple and node.lineno <= number <= (node.end_lineno or 0):
            joined = " ".join(line.strip() for line in lines[node.lineno - 1 : node.end_lineno])
            return joined.replace("( ", "(").replace(", )", ")")
    return lines[number - 1].strip()
