"""One bounded download: in time, in bytes, in attempts and in redirects."""

import sys
import time
from dataclasses import dataclass

from .report import Unavailable


@dataclass(frozen=True)
class Limits:
    """What a server may cost; seconds, and counts."""

    connect_s: float = 10.0
    silence_s: float = 20.0  # without a byte
    total_s: float = 600.0  # for one file, all attempts together
    attempts: int = 3
    pause_s: float = 0.5  # before the second attempt; doubles before each further one
    redirects: int = 5


LIMITS = Limits()


class _Transient(Exception):
    """A failure that may be gone at the next attempt."""


def fetch(url: str, max_bytes: int) -> bytes:
    """Return the body at `url`, undecoded; Unavailable, with the reason, when that fails.

    What may pass (no connection, silence, a broken connection, HTTP 408, 429, 5xx) is tried
    again after a growing pause; what will not pass (403, 404, a redirect loop) is not.
    """
    deadline = time.monotonic() + LIMITS.total_s
    for attempt in range(LIMITS.attempts):
        try:
            return _attempt(url, max_bytes, deadline)
        except _Transient as error:
            failure = error
        if attempt + 1 < LIMITS.attempts:
            time.sleep(LIMITS.pause_s * 2**attempt)
    raise Unavailable(f"{failure}, {LIMITS.attempts} times")


def _attempt(url: str, max_bytes: int, deadline: float) -> bytes:
    import requests  # loading from a cache should not wait for its import
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    try:
        with requests.Session() as session:
            session.max_redirects = LIMITS.redirects
            with session.get(
                url,
                stream=True,
                timeout=(LIMITS.connect_s, LIMITS.silence_s),
                headers={"Accept-Encoding": "identity"},
                hooks={"response": _skip_redirect_body},
            ) as response:
                _expect_file(response, max_bytes)
                return _read(response, max_bytes, deadline)
    except requests.ConnectTimeout:  # was tried for each of the server's addresses
        raise Unavailable(f"no connection within {LIMITS.connect_s:g} s") from None
    except (requests.ReadTimeout, ReadTimeoutError):
        raise _Transient(f"stalled: no byte for {LIMITS.silence_s:g} s") from None
    except requests.exceptions.SSLError as error:
        raise Unavailable(f"its certificate is refused: {_root(error)}") from None
    except (requests.ConnectionError, HTTPError) as error:
        raise _Transient(f"the connection failed: {_root(error)}") from None
    except requests.RequestException as error:
        raise Unavailable(_root(error)) from None


def _skip_redirect_body(response, **_) -> None:
    """Requests reads the body of a redirect to its end, which may never come."""
    if response.is_redirect:
        response.close()


def _expect_file(response, max_bytes: int) -> None:
    status = response.status_code
    if status in (408, 429) or status >= 500:
        raise _Transient(f"HTTP {status}")
    if status != 200:
        raise Unavailable(f"HTTP {status}")
    if "text/html" in response.headers.get("Content-Type", ""):
        raise Unavailable("sent an HTML page instead of the file (a proxy's or a log-in page?)")
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise Unavailable(f"announced {int(length):,} bytes, more than this file can have")


def _read(response, max_bytes: int, deadline: float) -> bytes:
    from tqdm import tqdm

    length = response.headers.get("Content-Length", "")
    body = bytearray()
    with tqdm(
        desc=response.url.rpartition("/")[2],
        total=int(length) if length.isdecimal() else None,
        unit="B",
        unit_scale=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        # read1 returns after each packet: a server that drips cannot outlast the deadline.
        while chunk := response.raw.read1(1 << 18, decode_content=False):
            body += chunk
            bar.update(len(chunk))
            if len(body) > max_bytes:
                raise Unavailable(f"sent more than {max_bytes:,} bytes, more than this file has")
            if time.monotonic() > deadline:
                raise Unavailable(f"too slow: {len(body):,} bytes in {LIMITS.total_s:g} s")
    return bytes(body)


def _root(error: BaseException) -> str:
    """Return the first cause below the layers that HTTP libraries wrap around it."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return getattr(error, "strerror", None) or str(error)
