"""Statuses, times and environments in the words that people read."""

from datetime import UTC, datetime
from typing import Any

# A sign, a word and a colour: none of them is needed to understand the others.
SIGNS = {
    "passed": "✓",
    "failed": "✗",
    "timeout": "✗",
    "interrupted": "!",
    "running": "…",
    "not run": "\u2013",
}
LABELS = {
    "started": "Started",
    "finished": "Finished",
    "python": "Python",
    "jax": "JAX",
    "jaxlib": "jaxlib",
    "numpy": "NumPy",
    "optax": "Optax",
    "matplotlib": "Matplotlib",
    "devices": "Devices",
    "driver": "NVIDIA driver",
    "cpu": "CPU",
    "cores": "CPU cores",
    "git_commit": "Commit",
    "dataset": "Data set",
}
FOLDED = {
    "backend",
    "device_kind",
    "device_count",
    "lesson_devices",
    "simulated",
    "git_dirty",
    "resumed",
    "repeat",
    "solved",
}


def when(text: str) -> str:
    """An ISO time as "2026-11-29 16:58 UTC"; as it stands if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def seconds_text(seconds: float | None) -> str:
    """Seconds as a reader wants them: "31.2 s", "2 min 05 s"; a dash for None."""
    if seconds is None:
        return "\u2013"  # an en dash
    if round(seconds, 1) < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def environment_rows(environment: dict[str, Any]) -> list[tuple[str, str]]:
    """(label, value) pairs: the usual facts in a fixed order, then whatever else was noted."""
    facts = {**environment, "devices": _devices(environment)}
    facts |= {key: when(facts[key]) for key in ("started", "finished") if key in facts}
    if facts.get("git_commit") and facts.get("git_dirty"):
        facts["git_commit"] += " with uncommitted changes"
    if "backend" in facts:
        facts["driver"] = facts.get("driver") or "none"
    known = [(LABELS[key], facts[key]) for key in LABELS if facts.get(key) is not None]
    others = [(k, v) for k, v in facts.items() if k not in LABELS and k not in FOLDED]
    return [(label, _text(value)) for label, value in known + others]


def headline(environment: dict[str, Any]) -> list[str]:
    """The few facts that tell one run from another at a glance."""
    versions = [(name, environment.get(name.lower())) for name in ("JAX", "Python")]
    facts = [f"{name} {version}" for name, version in versions if version]
    if devices := _devices(environment, briefly=True):
        facts.append(devices)
    if environment.get("solved"):
        facts.append("every exercise with its solution")
    if environment.get("git_commit"):
        facts.append(f"commit {environment['git_commit'][:9]}")
    return facts


def _devices(environment: dict[str, Any], briefly: bool = False) -> str | None:
    """The devices in words; of a run whose lessons had different ones, which had which."""
    found: dict[str, list[str]] = {}
    lessons = environment.get("lesson_devices") or {"": environment}
    for name, facts in lessons.items():
        if words := _device_words(facts, briefly):
            found.setdefault(words, []).append(name)
    if len(found) < 2:
        return next(iter(found), None)
    order = list(lessons)
    return "; ".join(f"{words} ({_named(names, order)})" for words, names in found.items())


def _device_words(facts: dict[str, Any], briefly: bool) -> str | None:
    count, kind = facts.get("device_count"), facts.get("device_kind")
    if count is None or kind is None:
        return None
    name = "CPU" if kind == "cpu" else kind
    why = "" if briefly else ": timings say nothing about speed"
    return f"{count} \u00d7 {name}" + (f", simulated{why}" if facts.get("simulated") else "")


def _named(names: list[str], order: list[str]) -> str:
    """Lessons by their numbers: "lesson 01", "lessons 01 to 03, 05"."""
    spans: list[list[str]] = []
    for name in names:
        if spans and order.index(name) == order.index(spans[-1][-1]) + 1:
            spans[-1].append(name)
        else:
            spans.append([name])
    numbers = [[name.partition("_")[0] for name in span] for span in spans]
    texts = [f"{n[0]} to {n[-1]}" if len(n) > 2 else ", ".join(n) for n in numbers]
    return f"lesson{'s' * (len(names) > 1)} {', '.join(texts)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\u2013" if value is None else str(value)
