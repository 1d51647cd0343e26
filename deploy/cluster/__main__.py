"""Command line: `python3 -m deploy.cluster COMMAND`, which is what the make targets call."""

import sys

from deploy.cluster import create, destroy, jobs, manifest, preflight, server
from deploy.cluster.talk import Stop

COMMANDS = {
    "preflight": preflight.preflight,
    "up": create.up,
    "deploy": server.deploy,
    "open": server.open_server,
    "stop": server.stop,
    "down": destroy.down,
    "run": jobs.run_course,
    "workers": jobs.run_workers,
    "manifest": manifest.write,
}


def main(arguments: list[str]) -> int:
    """Run one command; returns the exit status."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: python3 -m deploy.cluster {{{','.join(COMMANDS)}}}", file=sys.stderr)
        return 2
    try:
        COMMANDS[arguments[0]]()
    except Stop as stop:
        print(f"error: {stop}", file=sys.stderr)
        if stop.cure:
            print(f"What to do: {stop.cure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped by Ctrl-C", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
