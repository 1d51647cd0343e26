"""One answer of a check."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True)
class Row:
    """What one probe found.

    Attributes:
        status: "OK"; "WARN" where lessons run, but not as well as they could; "FAIL".
        name: what was looked at.
        found: what there is.
        cure: what to do about a WARN or a FAIL.
    """

    status: Status
    name: str
    found: str
    cure: str = ""
