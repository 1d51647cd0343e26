"""What runs in a variant's process: python -m benchmarks.worker ADDRESS MODULE:CLASS NEEDS ARGS...

It makes the class when it is first asked for something, calls the method that the parent names,
and sends back what it returns, until the parent is gone.
"""

import contextlib
import importlib
import importlib.util
import sys
import traceback
from multiprocessing.connection import Connection, Listener
from typing import Any

NOT_INSTALLED = "not installed"


def main() -> None:
    address, target, needs, *arguments = sys.argv[1:]
    goodbye = contextlib.suppress(EOFError)  # all that a parent says who has hung up
    with Listener(address, family="AF_UNIX") as door, door.accept() as channel, goodbye:
        serve(channel, target, needs, arguments)


def serve(channel: Connection, target: str, needs: str, arguments: list[str]) -> None:
    """Answer each method's name with (True, result) or (False, message)."""
    variant: Any = None
    while True:
        method = channel.recv()
        try:
            variant = variant or make(target, needs, arguments)
            answer = (True, getattr(variant, method)())
        except Exception as error:
            traceback.print_exc()
            answer = (False, error.args[0] if isinstance(error, Missing) else said(error))
        channel.send(answer)


class Missing(Exception):
    """A peer's package isn't there."""


def make(target: str, needs: str, arguments: list[str]) -> Any:
    """Make the variant, or raise Missing where the peer that it needs isn't installed."""
    if needs and importlib.util.find_spec(needs) is None:
        raise Missing(NOT_INSTALLED)
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)(*arguments)


def said(error: Exception) -> str:
    """One line about an error, for a table."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


if __name__ == "__main__":
    main()
