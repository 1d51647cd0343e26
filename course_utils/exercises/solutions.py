"""Solutions, as solutions/lesson_NN.py keeps them: cells that replace those of the lesson.

# %% [markdown] exercise:05.2
# Why it is solved like that, in a sentence or two.

# %% exercise:05.2
answer = 3
exercise("05.2").check(answer)
"""

import re
from dataclasses import dataclass
from pathlib import Path

TAG = "exercise:"
FOLDER = Path(__file__).resolve().parents[2] / "solutions"
_HEAD = re.compile(rf"^# %% ?(\[markdown\] )?{TAG}(\d\d\.\d)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Solution:
    """The code of a cell that solves an exercise, and why it does, in words."""

    code: str
    why: str


def find(id: str) -> Solution:
    """The solution of an exercise; LookupError, with a message for learners, without one."""
    name = f"lesson_{id.partition('.')[0]}.py"
    try:
        return read(FOLDER / name)[id]
    except OSError:
        raise LookupError(
            f"This machine has the course without its solutions. In the course's repository they "
            f"are in solutions/{name}."
        ) from None
    except KeyError:
        raise LookupError(f"solutions/{name} has none for exercise {id}.") from None


def read(path: Path) -> dict[str, Solution]:
    """The solutions in a file, by id; OSError if it can't be read."""
    _, *parts = _HEAD.split(path.read_text(encoding="utf-8"))
    codes: dict[str, str] = {}
    whys: dict[str, str] = {}
    for markdown, id, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if markdown:
            lines = (line.removeprefix("#").strip() for line in body.strip().splitlines())
            whys[id] = " ".join(lines)
        else:
            codes[id] = body.strip()
    return {id: Solution(code, whys.get(id, "")) for id, code in codes.items()}
