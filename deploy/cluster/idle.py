"""When the server is to stop by itself: IDLE_MINUTES and STOP_AT, as given to `make deploy`."""

from datetime import UTC, datetime

from deploy.cluster.programs import parsed, setting
from deploy.cluster.settings import Settings
from deploy.cluster.talk import Stop


def settings_given() -> dict[str, str]:
    """What the idle scaler is told; Stop for what it could not read."""
    return {"IDLE_MINUTES": _minutes(), "STOP_AT": _stop_at()}


def in_words(idle: dict[str, str]) -> str:
    """Until when a server goes on."""
    minutes = int(idle["IDLE_MINUTES"])
    idle_stop = f"nothing was computed for {minutes} minutes" if minutes else "somebody stops it"
    return f"{idle_stop}, or {idle['STOP_AT']}" if idle["STOP_AT"] else idle_stop


def refuse_past_stop(settings: Settings) -> None:
    """Stop if a server that is started now would be stopped at once."""
    where = ("get", "configmap/jax-idle-settings", "-o", "json")
    data = parsed(settings.kubectl(*where), "Is the server deployed? make deploy").get("data", {})
    if (at := data.get("STOP_AT", "")) and _time(at) <= datetime.now(UTC):
        raise Stop(
            f"the stop time set with the last deploy ({at}) is past: a server would be stopped at once",
            "make deploy, without STOP_AT or with a later one.",
        )


def _minutes() -> str:
    text = setting("IDLE_MINUTES", "60")
    if not text.isdecimal():
        raise Stop(f"IDLE_MINUTES is {text!r}", "A whole number of minutes; 0 switches it off.")
    return text


def _stop_at() -> str:
    text = setting("STOP_AT")
    if not text:
        return ""
    if _time(text) <= datetime.now(UTC):
        raise Stop(f"STOP_AT={text} is past", "Give a time that is still to come.")
    return text


def _time(text: str) -> datetime:
    cure = "Like this, with its time zone: STOP_AT=2026-10-05T18:00:00+02:00"
    try:
        time_read = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise Stop(f"STOP_AT={text} is no time", cure) from error
    if time_read.tzinfo is None:
        raise Stop(f"STOP_AT={text} says no time zone", cure)
    return time_read
