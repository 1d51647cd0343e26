"""All rows in order, and how they are shown: a table for people, JSON for machines."""

import json
from collections.abc import Callable, Iterator

from course_utils.check import compute, gpu, machine, packages
from course_utils.check.limits import Probe, within
from course_utils.check.row import Row
from course_utils.display import show_table

QUICK_S = 30  # limit of a probe that starts no JAX
# Memory held by others is asked for before a probe of ours takes any.
QUICK: dict[str, Probe] = {
    "Python": packages.python,
    "Packages": packages.locked_packages,
    "JAX": packages.jax_versions,
    "NVIDIA driver": gpu.driver,
    "LD_LIBRARY_PATH": gpu.library_path,
    "GPU memory": gpu.memory_of_others,
    "Devices": compute.devices,
    "Memory": machine.memory,
    "Disk": machine.disk,
    "Shared memory": machine.shared_memory,
    "Data set": machine.dataset,
}
LIMITS = {"Devices": compute.START_S + 10, "Data set": 120}


def quick_rows() -> Iterator[Row]:
    """What can be seen in seconds."""
    for name, probe in QUICK.items():
        yield within(LIMITS.get(name, QUICK_S), name, probe)


def all_rows(work_s: float, port: int) -> Iterator[Row]:
    """The quick rows, the port of the labs, and the devices at work."""
    limit = work_s + compute.START_S + 10
    yield from quick_rows()
    yield within(QUICK_S, f"Port {port}", lambda: machine.port(port))
    yield within(limit, "Matrix product", lambda: compute.matmul(work_s))
    yield within(limit, "All-reduce", compute.all_reduce)


def quick() -> list[Row]:
    """Show the quick rows as a table in a notebook; returns them.

    Example:
        rows = quick()
    """
    rows = list(quick_rows())
    headers, table = ["result", "what", "found"], [[f"[{r.status}]", r.name, r.found] for r in rows]
    if any(map(cure, rows)):
        headers.append("what to do")
        table = [[*line, cure(row)] for line, row in zip(table, rows, strict=True)]
    show_table(headers, table, title=verdict(rows))
    return rows


def cure(row: Row) -> str:
    """What to do about a row; nothing where all is well."""
    return "" if row.status == "OK" else row.cure


def verdict(rows: list[Row]) -> str:
    """The table in one sentence."""
    fails = sum(row.status == "FAIL" for row in rows)
    warns = sum(row.status == "WARN" for row in rows)
    if fails:
        return f"Not ready: {fails} of {len(rows)} checks fail."
    if warns:
        return f"Ready, with {warns} warning{'s' * (warns > 1)}."
    return "Ready: every check is fine."


def print_rows(rows: Iterator[Row], say: Callable[[str], None]) -> list[Row]:
    """Say each row as soon as it is there, its cure beneath it."""
    seen = []
    for row in rows:
        seen.append(row)
        say(f"{f'[{row.status}]':<6}  {row.name:<16}  {row.found}")
        if cure(row):
            say(f"{'':<26}{cure(row)}")
    say(f"\n{verdict(seen)}")
    return seen


def as_json(rows: list[Row]) -> str:
    """One JSON object: whether all is well, and every row."""
    ready = all(row.status != "FAIL" for row in rows)
    listed = [{"status": r.status, "name": r.name, "found": r.found, "cure": cure(r)} for r in rows]
    return json.dumps({"ready": ready, "rows": listed}, indent=1, ensure_ascii=False)
