"""Check this machine: `python -m course_utils.check --help`."""

import argparse
import os
import sys

from course_utils.check import machine, show

DESCRIPTION = "Say whether this machine is ready for the course, and what to do if not."


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if any check fails."""
    parser = argparse.ArgumentParser("python -m course_utils.check", description=DESCRIPTION)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument("--json", action="store_true", default=_set("JSON"), help="for machines")
    parser.add_argument("--port", type=_port, default=os.environ.get("PORT") or machine.PORT)
    parser.add_argument("--seconds", type=float, default=10, help="of matrix products (10)")
    options = parser.parse_args(arguments)
    rows = show.quick_rows() if options.quick else show.all_rows(options.seconds, options.port)
    if options.json:
        seen = list(rows)
        print(show.as_json(seen))
    else:
        seen = show.print_rows(rows, lambda line: print(line, flush=True))
    return int(any(row.status == "FAIL" for row in seen))


def _port(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"PORT is {text!r}; it takes a whole number from 1 to 65535, such as {machine.PORT}."
    )


def _set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in ("", "0", "no", "false")


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # not sys.exit: a probe's thread may still wait for a dead file system
