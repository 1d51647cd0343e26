"""Measured groups as Markdown: every number comes from the results, none is typed."""

import math
from collections.abc import Mapping
from typing import Any

Results = Mapping[str, Any]


def number(value: float) -> str:
    """A number in three significant digits, or as it is where it is whole and small."""
    if value == 0 or (float(value).is_integer() and abs(value) < 1000):
        return f"{value:.0f}"
    rounded = float(f"{value:.3g}")
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def spread(figure: Mapping[str, float]) -> str:
    """A median, and from where to where the samples go: `4.1 (3.9-4.4)`."""
    median, low, high = (number(figure[key]) for key in ("median", "min", "max"))
    return median if low == high else f"{median} ({low}\u2013{high})"


def group_table(group: Results) -> list[str]:
    """The rows of a group, with the columns that it shows."""
    columns = [c for c in group["columns"] if any(c in row["figures"] for row in group["rows"])]
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for row in group["rows"]:
        cells = [_cell(row, column) for column in columns]
        if row["error"]:
            cells = [escaped(row["error"]), *[""] * (len(columns) - 1)]
        lines.append(f"| {row['label']} | " + " | ".join(cells) + " |")
    return lines


def claims_table(groups: list[Results]) -> list[str]:
    """What is to hold, in all groups, and what was found."""
    lines = ["| what is to hold | wanted | found | holds |", "| --- | ---: | ---: | --- |"]
    for claim in (claim for group in groups for claim in group["claims"]):
        found = spread(claim["figure"]) if claim["figure"] else "not measured"
        holds = "yes" if claim["holds"] else "**no**" if claim["figure"] else ""
        lines.append(f"| {claim['text']} | {claim['wanted']} | {found} | {holds} |")
    return lines


def rounds_of(group: Results) -> int:
    """How many rounds a group's figures come from."""
    counts = [f["n"] for row in group["rows"] for f in row["figures"].values()]
    return max(counts, default=0)


def how(group: Results) -> str:
    """How a group was measured, and how often."""
    return f"{group['how']} Rounds: {rounds_of(group)}."


def place(results: Results) -> str:
    """One sentence: on what machine, with what, and when."""
    machine, versions = results["machine"], results["versions"]
    peers = ", ".join(f"{name} {v}" for name, v in versions.items() if v)
    return (
        f"Measured on {machine['cores']} cores of {machine['processor']}, {machine['memory GB']} GB, "
        f"{machine['system']}, on {results['date']} at commit {results['commit']}, with {peers}."
    )


def report(results: Results) -> str:
    """All groups, whole, as the file beside the results."""
    lines = ["# What was measured", "", place(results), ""]
    lines += ["Medians of the rounds, with the smallest and the largest.", ""]
    lines += [*claims_table(results["groups"]), ""]
    for group in results["groups"]:
        lines += [f"## {group['title']}", "", how(group), ""]
        lines += [*group_table(group), ""]
        if group["compared"]:
            lines += [*_compared_table(group["compared"]), ""]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text of an error, harmless inside a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _cell(row: Results, column: str) -> str:
    return spread(row["figures"][column]) if column in row["figures"] else ""


def _compared_table(rows: list[Results]) -> list[str]:
    lines = ["| the same ten steps | worst relative difference | where |", "| --- | ---: | --- |"]
    return lines + [f"| {r['name']} | {r['difference']:.1e} | {r['leaf']} |" for r in rows]
