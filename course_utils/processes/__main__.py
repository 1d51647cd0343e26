"""Command line of the launcher: `python -m course_utils.processes --help`."""

import argparse
import signal
import sys
from types import FrameType

from course_utils.processes.launching import launch
from course_utils.processes.outcome import ProcessFailed

USAGE = "python -m course_utils.processes --processes N --devices D [options] -- PYTHON_ARGUMENTS"
DESCRIPTION = "Start N local JAX processes, watch them, and stop them all when one dies."
EXAMPLE = "Example: ... --processes 2 --devices 2 -- -m course_utils.processes.worker --steps 20"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Options; what stands after `--` are the arguments of Python in each process."""
    arguments = sys.argv[1:] if arguments is None else arguments
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(usage=USAGE, description=DESCRIPTION, epilog=EXAMPLE)
    add = parser.add_argument
    add("--processes", type=int, default=2, metavar="N", help="how many (default: 2)")
    add("--devices", type=int, default=1, metavar="D", help="devices of each (default: 1)")
    add("--timeout", type=float, default=600.0, metavar="S", help="for the whole run (600)")
    add("--heartbeat", type=int, default=10, metavar="S", help="silence that counts as death (10)")
    add("--initialization-timeout", type=int, default=60, metavar="S", help="to come at all (60)")
    add("--gpus", action="store_true", help="GPUs instead of simulated CPU devices")
    options = parser.parse_args(arguments[:split])
    options.argv = arguments[split + 1 :]
    if not options.argv:
        parser.error("say after -- what each process runs")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Launch what the command line asks for; returns the exit status."""
    options = parse(arguments)
    # As an exception these, too, end the processes before this one ends.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        launch(
            options.argv,
            options.processes,
            options.devices,
            options.timeout,
            heartbeat=options.heartbeat,
            initialization_timeout=options.initialization_timeout,
            gpus=options.gpus,
        )
    except (ProcessFailed, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, ProcessFailed) else 2
    except KeyboardInterrupt:
        print("error: stopped by Ctrl-C; no process is left", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
