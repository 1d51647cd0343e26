"""Each way in which a download fails a class: it is bounded, named, and the next source serves."""
# ruff: noqa: F811 - the fixture `world` is imported

import io
import sys
import time

import pytest
from fashion_mnist_world import (
    HASTY,
    PATIENT,
    Misbehaviour,
    refusing_url,
    server,
    unreachable_url,
    world,  # noqa: F401
)

from course_utils.fashion_mnist import DatasetUnavailable, download, load

FAULTS = {
    Misbehaviour.html_page: "sent an HTML page instead of the file",
    Misbehaviour.html_page_that_claims_to_be_a_file: "is an HTML page, not a .gz file",
    Misbehaviour.http_403: "HTTP 403",
    Misbehaviour.http_404: "HTTP 404",
    Misbehaviour.http_500: "HTTP 500, 2 times",
    Misbehaviour.never_answers: "stalled: no byte for 0.5 s, 2 times",
    Misbehaviour.stalls_in_the_middle: "stalled: no byte for 0.5 s, 2 times",
    Misbehaviour.drips: "too slow: ",
    Misbehaviour.closes_in_the_middle: "the connection failed: ",
    Misbehaviour.closes_in_the_middle_without_length: "is truncated: the .gz ends after",
    Misbehaviour.closes_without_a_word: "the connection failed: ",
    Misbehaviour.sends_without_end: "more than this file has",
    Misbehaviour.announces_too_much: "announced 1,000,000,000,000 bytes",
    Misbehaviour.packs_too_much: "is not an IDX file of images: it starts with the number 0",
    Misbehaviour.redirects_in_a_circle: "Exceeded 5 redirects",
    Misbehaviour.redirects_without_end: "redirects",
    Misbehaviour.flips_a_bit: "is corrupt: its SHA-256 is",
    Misbehaviour.sends_other_images: "has the shape 300 x 32 x 32 instead of 300 x 28 x 28",
}
STALLS = (Misbehaviour.never_answers, Misbehaviour.stalls_in_the_middle, Misbehaviour.drips)


def mirrors(monkeypatch, *urls):
    monkeypatch.setenv("FASHION_MNIST_MIRRORS", " ".join(urls))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_failing_mirror_is_named_in_bounded_time_and_the_next_one_serves(
    fault, world, monkeypatch, capfd
):
    if fault in STALLS:
        monkeypatch.setattr(download, "LIMITS", HASTY)
    with server(world.packed, fault) as bad, server(world.packed) as good:
        mirrors(monkeypatch, bad.url, good.url)
        begin = time.monotonic()
        data = load(allow_sample=False)
        assert time.monotonic() - begin < 20
        assert bad.sent < 64 << 20
    assert world.is_right(data)
    assert data.source == f"download {good.url}"
    line = next(line for line in capfd.readouterr().err.splitlines() if "trying the next" in line)
    assert bad.url in line
    assert FAULTS[fault] in line


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_where_it_is_the_last_source_the_error_has_its_reason_on_one_line(
    fault, world, monkeypatch
):
    if fault in STALLS:
        monkeypatch.setattr(download, "LIMITS", HASTY)
    with server(world.packed, fault) as bad:
        mirrors(monkeypatch, bad.url)
        with pytest.raises(DatasetUnavailable) as failure:
            load(allow_sample=False)
    lines = [line for line in str(failure.value).splitlines() if bad.url in line]
    assert len(lines) == 1
    assert FAULTS[fault] in lines[0]
    assert not list(world.cache.glob("*ubyte*"))
    assert not list(world.cache.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("bad_url", "reason"),
    [(refusing_url, "refused"), (unreachable_url, "no connection within 0.5 s")],
    ids=["refuses", "does not answer"],
)
def test_a_mirror_that_cannot_be_connected_to_is_named_and_the_next_one_serves(
    bad_url, reason, world, monkeypatch, capfd
):
    monkeypatch.setattr(download, "LIMITS", HASTY)
    with bad_url() as bad, server(world.packed) as good:
        mirrors(monkeypatch, bad, good.url)
        assert world.is_right(load(allow_sample=False))
    assert reason in capfd.readouterr().err


@pytest.mark.parametrize("address", ["ftp://example.invalid/", "no-url", "http://"])
def test_a_mirror_that_is_no_web_address_is_named(address, world, monkeypatch):
    mirrors(monkeypatch, address)
    with pytest.raises(DatasetUnavailable, match=address):
        load(allow_sample=False)


@pytest.mark.parametrize(
    "way",
    [Misbehaviour.chunked, Misbehaviour.encoded, Misbehaviour.redirect_once],
    ids=lambda way: way.__name__,
)
def test_servers_may_send_the_same_file_in_other_ways(way, world, monkeypatch):
    with server(world.packed, way) as mirror:
        mirrors(monkeypatch, mirror.url)
        assert world.is_right(load(allow_sample=False))


@pytest.mark.parametrize(
    "fault", [Misbehaviour.fails_once, Misbehaviour.breaks_once], ids=lambda fault: fault.__name__
)
def test_what_may_pass_is_tried_again_after_a_growing_pause(fault, world, monkeypatch):
    pauses = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    with server(world.packed, fault) as mirror:
        mirrors(monkeypatch, mirror.url)
        assert world.is_right(load(allow_sample=False))
        assert set(mirror.gets.values()) == {2}
    assert pauses == [PATIENT.pause_s] * 4


def test_the_pause_doubles_and_is_bounded_by_the_number_of_attempts(world, monkeypatch):
    pauses = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    monkeypatch.setattr(download, "LIMITS", download.Limits(attempts=4, pause_s=1.0))
    with server(world.packed, Misbehaviour.http_500) as mirror:
        mirrors(monkeypatch, mirror.url)
        with pytest.raises(DatasetUnavailable, match="4 times"):
            load(allow_sample=False)
    assert pauses == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "fault", [Misbehaviour.http_403, Misbehaviour.http_404, Misbehaviour.redirects_in_a_circle]
)
def test_what_will_not_pass_is_asked_for_once_and_no_other_file_is(fault, world, monkeypatch):
    with server(world.packed, fault) as mirror:
        mirrors(monkeypatch, mirror.url)
        with pytest.raises(DatasetUnavailable):
            load(allow_sample=False)
        assert len(mirror.gets) == 1
        assert mirror.gets.total() <= 1 + PATIENT.redirects


def test_files_that_one_mirror_gave_are_kept_when_the_next_must_give_the_rest(world, monkeypatch):
    half = dict(list(world.packed.items())[:2])

    def only_half(request, body):
        (Misbehaviour.none if body else Misbehaviour.http_404)(request, body)

    with server(half, only_half) as first, server(world.packed) as second:
        mirrors(monkeypatch, first.url, second.url)
        data = load(allow_sample=False)
        assert second.gets.total() == 2
    assert world.is_right(data)
    assert data.source == f"download {first.url} + download {second.url}"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal(world, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with server(world.packed) as mirror:
        mirrors(monkeypatch, mirror.url)
        load()
    assert "train-images-idx3-ubyte.gz: 100%" in terminal.getvalue()


def test_elsewhere_one_line_says_that_it_downloads(world, monkeypatch, capfd):
    with server(world.packed) as mirror:
        mirrors(monkeypatch, mirror.url)
        load()
        assert capfd.readouterr() == ("", f"Fashion-MNIST: downloading from {mirror.url}\n")
