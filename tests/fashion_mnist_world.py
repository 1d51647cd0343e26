"""A small, closed world for the tests of course_utils.fashion_mnist.

Its four files are random and small, with their own checksums; its cache, home, package and
temporary folders are below tmp_path; its servers are on the loopback and misbehave on purpose.
"""

import contextlib
import gzip
import hashlib
import socket
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from course_utils.fashion_mnist import download, idx, settings
from course_utils.fashion_mnist.make_sample import to_idx

TRAIN, TEST = 300, 50
# Patient where a server is good, for a busy machine starves it; hasty where it stalls.
PATIENT = download.Limits(attempts=2, pause_s=0.01)
HASTY = download.Limits(connect_s=0.5, silence_s=0.5, total_s=1.5, attempts=2, pause_s=0.01)
NAMES = tuple(spec.name for spec in idx.FILES)


def make_files() -> tuple[tuple[idx.FileSpec, ...], dict[str, bytes]]:
    """Return the specs and contents of four small, valid IDX files."""
    rng = np.random.default_rng(0)
    shapes = ((TRAIN, 28, 28), (TRAIN,), (TEST, 28, 28), (TEST,))
    contents = {
        name: to_idx(rng.integers(0, 256 if len(shape) == 3 else 10, shape, np.uint8))
        for name, shape in zip(NAMES, shapes, strict=True)
    }
    specs = tuple(
        idx.FileSpec(name, shape, hashlib.sha256(contents[name]).hexdigest())
        for name, shape in zip(NAMES, shapes, strict=True)
    )
    return specs, contents


@dataclass
class World:
    root: Path
    specs: tuple[idx.FileSpec, ...]
    contents: dict[str, bytes]
    cache: Path
    temporary_cache: Path
    package: Path

    @property
    def packed(self) -> dict[str, bytes]:
        """The .gz files, by the name that they have on a server."""
        return {f"{name}.gz": gzip.compress(raw, 1) for name, raw in self.contents.items()}

    def folder(self, name: str, raw: bool = False) -> Path:
        """A folder with the four files; made if missing."""
        folder = self.root / name
        folder.mkdir(parents=True)
        for file, content in (self.contents if raw else self.packed).items():
            (folder / file).write_bytes(content)
        return folder

    def is_right(self, data) -> bool:
        """Whether the arrays are those of this world."""
        arrays = (data.train_images, data.train_labels, data.test_images, data.test_labels)
        return all(
            to_idx(array) == self.contents[name] for name, array in zip(NAMES, arrays, strict=True)
        )


@pytest.fixture
def world(tmp_path, monkeypatch) -> World:
    """A world with an empty cache, and no other source."""
    specs, contents = make_files()
    for variable in ("DIR", "MIRRORS", "SOURCES"):
        monkeypatch.delenv(f"FASHION_MNIST_{variable}", raising=False)
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(idx, "FILES", specs)
    monkeypatch.setattr(settings, "MIRRORS", ())
    monkeypatch.setattr(settings, "PACKAGE_FOLDER", tmp_path / "package")
    monkeypatch.setattr(download, "LIMITS", PATIENT)
    from course_utils.fashion_mnist.keeper import cache_folders

    cache, temporary_cache = cache_folders()
    return World(tmp_path, specs, contents, cache, temporary_cache, tmp_path / "package")


def state_of(folder: Path) -> dict[str, tuple]:
    """Names, content hashes, sizes and times of all that is in a folder, itself included."""
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_size,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [folder, *folder.rglob("*")]
    }


class Misbehaviour:
    """What a server does with a request for a file; each method is one way to fail a class."""

    @staticmethod
    def none(request, body):
        request.head(200, length=len(body))
        request.wfile.write(body)

    @staticmethod
    def chunked(request, body):
        """No fault: only no Content-Length."""
        request.head(200, **{"Transfer-Encoding": "chunked"})
        for start in range(0, len(body), 50_000):
            part = body[start : start + 50_000]
            request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        request.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def encoded(request, body):
        """No fault: a server that takes the .gz for its own compression of the raw file."""
        request.head(200, length=len(body), **{"Content-Encoding": "gzip"})
        request.wfile.write(body)

    @staticmethod
    def redirect_once(request, body):
        """No fault: the file has moved."""
        if "moved" in request.path:
            return Misbehaviour.none(request, body)
        request.head(302, length=0, Location=f"/moved{request.path}")

    @staticmethod
    def fails_once(request, body):
        """HTTP 503 at the first request for each file."""
        if request.server.gets[request.path] == 1:
            request.head(503, length=0)
        else:
            Misbehaviour.none(request, body)

    @staticmethod
    def breaks_once(request, body):
        """The first connection for each file breaks in the middle."""
        if request.server.gets[request.path] == 1:
            Misbehaviour.closes_in_the_middle(request, body)
        else:
            Misbehaviour.none(request, body)

    @staticmethod
    def slow(request, body):
        """No fault: about 0.1 s for a file of images."""
        request.head(200, length=len(body))
        for start in range(0, len(body), 25_000):
            request.wfile.write(body[start : start + 25_000])
            time.sleep(0.01)

    @staticmethod
    def html_page(request, body):
        page = b"<!DOCTYPE html><title>Log in to the conference network</title>"
        request.head(200, length=len(page), **{"Content-Type": "text/html; charset=utf-8"})
        request.wfile.write(page)

    @staticmethod
    def html_page_that_claims_to_be_a_file(request, body):
        page = b"\n<html><title>Log in</title>"
        request.head(200, length=len(page))
        request.wfile.write(page)

    @staticmethod
    def http_403(request, body):
        request.head(403, length=0)

    @staticmethod
    def http_404(request, body):
        request.head(404, length=0)

    @staticmethod
    def http_500(request, body):
        request.head(500, length=0)

    @staticmethod
    def never_answers(request, body):
        request.server.stop.wait(20)

    @staticmethod
    def stalls_in_the_middle(request, body):
        request.head(200, length=len(body))
        request.wfile.write(body[: len(body) // 2])
        request.server.stop.wait(20)

    @staticmethod
    def drips(request, body):
        """Never silent for long, never done."""
        request.head(200, length=len(body))
        for byte in body:
            if request.server.stop.wait(0.05):
                break
            request.wfile.write(bytes([byte]))

    @staticmethod
    def closes_in_the_middle(request, body):
        request.head(200, length=len(body))
        request.wfile.write(body[: len(body) // 2])

    @staticmethod
    def closes_in_the_middle_without_length(request, body):
        request.head(200)
        request.wfile.write(body[: len(body) // 2])

    @staticmethod
    def closes_without_a_word(request, body):
        pass

    @staticmethod
    def sends_without_end(request, body):
        request.head(200)
        request.write_for_ever(b"\x1f\x8b" + bytes(65_536))

    @staticmethod
    def announces_too_much(request, body):
        request.head(200, length=10**12)
        request.write_for_ever(bytes(65_536))

    @staticmethod
    def packs_too_much(request, body):
        """A .gz of 10 kB that unpacks to 10 MB."""
        Misbehaviour.none(request, gzip.compress(bytes(10_000_000)))

    @staticmethod
    def redirects_in_a_circle(request, body):
        request.head(302, length=0, Location=request.path)

    @staticmethod
    def redirects_without_end(request, body):
        """A redirect whose own body never ends."""
        request.head(302, Location="/elsewhere")
        request.write_for_ever(bytes(65_536))

    @staticmethod
    def flips_a_bit(request, body):
        raw = bytearray(gzip.decompress(body))
        raw[-1] ^= 1
        Misbehaviour.none(request, gzip.compress(raw, 1))

    @staticmethod
    def sends_other_images(request, body):
        Misbehaviour.none(request, gzip.compress(to_idx(np.zeros((TRAIN, 32, 32), np.uint8))))


class _Request(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.gets[self.path] += 1
        body = self.server.files.get(self.path.rpartition("/")[2], b"")
        with contextlib.suppress(OSError):  # the client may leave at any time
            self.server.behave(self, body)

    def head(self, status, length=None, **headers):
        self.send_response(status)
        if length is not None:
            headers["Content-Length"] = length
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def write_for_ever(self, part):
        while not self.server.stop.is_set():
            self.wfile.write(part)
            self.server.sent += len(part)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def server(files: dict[str, bytes], behave=Misbehaviour.none):
    """Serve `files` on the loopback; yields the server with its url, gets (a Counter), sent."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Request)
    httpd.request_queue_size = 128
    httpd.socket.listen(128)
    httpd.daemon_threads = True
    httpd.block_on_close = False
    httpd.files, httpd.behave, httpd.gets, httpd.sent = files, behave, Counter(), 0
    httpd.stop = threading.Event()
    httpd.url = f"http://127.0.0.1:{httpd.server_port}/"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield httpd
    finally:
        httpd.stop.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


@contextlib.contextmanager
def refusing_url():
    """The URL of a port where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}/"


@contextlib.contextmanager
def unreachable_url():
    """The URL of a host that drops connection attempts: its queue of them is full."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield f"http://127.0.0.1:{full.getsockname()[1]}/"
