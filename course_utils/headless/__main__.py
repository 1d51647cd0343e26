"""Command line of the headless runner: `python -m course_utils.headless --help`."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from course_utils.headless import lessons, parameters, resume
from course_utils.headless.errors import UsageError
from course_utils.headless.stop import Stop

DESCRIPTION = "Run lessons headlessly; keep executed notebooks, HTML and results.json."


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Options; make's variables, LESSONS to RESUME, are their defaults."""
    parser = argparse.ArgumentParser("python -m course_utils.headless", description=DESCRIPTION)
    add = parser.add_argument
    add("lessons", nargs="*", metavar="LESSON", help='number or name: "01", "01_training_loop"')
    add("--profile", default=_variable("PROFILE"), help="profile of every lesson: cpu, gpu, test")
    add("--devices", default=_variable("DEVICES"), help="number of devices (0: all there are)")
    add("--params", default=_variable("PARAMS"), help='"NAME=value NAME2=value"')
    add("--param", action="append", default=[], metavar="NAME=value", help="one of them; repeat")
    add("--repeat", type=_count, default=_variable("REPEAT") or 1, metavar="N", help="run each N x")
    add("--resume", default=_variable("RESUME"), metavar="RUN", help="go on with: 1 (latest), DIR")
    add("--solved", action="store_true", default=_yes("SOLVED"), help="with all solutions put in")
    add("--cell-timeout", type=_seconds, default=300.0, metavar="S", help="limit of one cell")
    add("--lesson-timeout", type=_seconds, default=900.0, metavar="S", help="limit of a lesson")
    add("--output", type=Path, metavar="DIR", help="keep runs here (default: runs/)")
    add("--notebooks", type=Path, metavar="DIR", help="where the lessons are (default: notebooks/)")
    options = parser.parse_args(arguments)
    options.lessons = options.lessons or (_variable("LESSONS") or "").replace(",", " ").split()
    return options


def _variable(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _yes(name: str) -> bool:
    return (_variable(name) or "").lower() not in resume.NO


def _count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 100):
        raise argparse.ArgumentTypeError(f"REPEAT is {text!r}; it takes a number from 1 to 100")
    return int(text)


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("must be more than 0 seconds")
    return value


def _assignments(options: argparse.Namespace) -> list[str]:
    try:
        given = shlex.split(options.params or "") + options.param
    except ValueError as error:
        raise UsageError(f"PARAMS cannot be read: {error}: {options.params}") from error
    for name in parameters.EVERY_LESSON:
        value = getattr(options, name.lower())
        given += [f"{name}={value}"] if value is not None else []
    return given


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit status."""
    options = parse(arguments)
    stop = Stop()
    stop.listen()
    options.runs = (options.output or lessons.REPOSITORY / "runs").resolve()
    options.notebooks = (options.notebooks or lessons.REPOSITORY / "notebooks").resolve()
    try:
        earlier = _earlier(options)
        wanted = earlier.lessons if earlier else options.lessons
        chosen = lessons.choose(lessons.find(options.notebooks), wanted, keep_unreadable=True)
        given = earlier.given if earlier else parameters.split(_assignments(options))
        return _run(options, chosen, parameters.check(given, chosen), stop, earlier)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _earlier(options: argparse.Namespace) -> resume.Earlier | None:
    """The run to go on with, if that is asked for; it decides lessons and parameters."""
    if (options.resume or "").lower() in resume.NO:
        return None
    asked = [*options.lessons, *_assignments(options)] + ["REPEAT"] * (options.repeat > 1)
    asked += ["SOLVED"] * options.solved
    if asked:
        raise UsageError(
            "RESUME goes on with the lessons and parameters that the run began with: "
            f"leave out {', '.join(asked)}."
        )
    return resume.find(options.resume, options.runs, options.notebooks)


def _run(
    options: argparse.Namespace,
    chosen: list[lessons.Lesson],
    values: dict,
    stop: Stop,
    earlier: resume.Earlier | None,
) -> int:
    from course_utils.headless import summary  # papermill takes a second to import
    from course_utils.headless.course import Course
    from course_utils.headless.folder import Folder
    from course_utils.headless.progress import for_this_terminal
    from course_utils.headless.watch import Limits

    folder = Folder(options.runs, earlier.folder if earlier else None)
    limits = Limits(options.cell_timeout, options.lesson_timeout)
    solved = earlier.solved if earlier else options.solved
    course = Course(folder, limits, stop, for_this_terminal(), solved)
    if earlier:
        course.progress.say(earlier.summary)
        repeat, results = earlier.repeat, earlier.results
    else:
        repeat, results = options.repeat, None
    entries = course.run(chosen, values, repeat, results)["notebooks"]
    lines = ["", *summary.table(entries), *summary.failures(entries), *summary.where(folder)]
    course.progress.say("\n".join(lines))
    return stop.exit_status or summary.exit_status(entries, folder)


if __name__ == "__main__":
    sys.exit(main())
