"""How the commands speak with whoever typed them."""

import os
import sys


class Stop(Exception):
    """The end of a command: what is wrong, and what to do about it."""

    def __init__(self, message: str, cure: str = "") -> None:
        super().__init__(message)
        self.cure = cure


def say(line: str = "") -> None:
    """Print a line at once."""
    print(line, flush=True)


def plan(title: str, steps: list[str]) -> None:
    """Say what will be done before it is done."""
    say(title)
    for step in steps:
        say(f"  - {step}")


def ask(question: str) -> None:
    """Go on only after a yes; YES=1 has said it already."""
    if os.environ.get("YES", "") == "1":
        say(f"{question} YES=1")
        return
    if not sys.stdin.isatty() and os.environ.get("ASK_WITHOUT_TERMINAL", "") != "1":
        raise Stop("nobody is here to answer", "Give YES=1 to go on without being asked.")
    try:
        answer = input(f"{question} [yes/no] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise Stop("not confirmed; nothing was done")
