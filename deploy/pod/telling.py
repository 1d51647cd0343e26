"""How the pod speaks: one kind of line, and errors that carry their cure."""


class Trouble(Exception):
    """Something that stops the start, with what to do about it."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message)
        self.cure = cure


def say(line: str) -> None:
    """Print a line at once: the next thing may be the process's end."""
    print(f"course: {line}", flush=True)
