"""What course_utils.fashion_mnist promises a lesson."""
# ruff: noqa: F811 - the fixture `world` is imported

import errno
import gzip
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from fashion_mnist_world import (
    NAMES,
    refusing_url,
    server,
    state_of,
    world,  # noqa: F401
)

from course_utils import fashion_mnist
from course_utils.fashion_mnist import (
    DatasetUnavailable,
    cache,
    gathering,
    idx,
    keeper,
    load,
    settings,
)
from course_utils.fashion_mnist import __main__ as command
from course_utils.fashion_mnist.gathering import SAMPLE_FOLDER
from course_utils.fashion_mnist.make_sample import sample_arrays, to_idx

TRAIN_IMAGES = NAMES[0]
REAL_FILES = idx.FILES
DEBIAN = settings.PACKAGE_FOLDER
needs_debian = pytest.mark.skipif(
    not (DEBIAN / f"{TRAIN_IMAGES}.gz").exists(), reason="needs the package dataset-fashion-mnist"
)


def arrays_of(data):
    return (data.train_images, data.train_labels, data.test_images, data.test_labels)


# What a lesson gets


def test_arrays_are_uint8_in_the_documented_shapes_and_read_only_from_every_source(world):
    world.folder("package")
    for _ in ("package", "cache"):
        data = load()
        assert world.is_right(data)
        for array in arrays_of(data):
            assert array.dtype == np.uint8
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    assert data.train_images.shape[1:] == (28, 28)
    assert len(data.class_names) == 10
    assert data.class_names[9] == "Ankle boot"


def test_a_filled_cache_serves_in_silence_and_is_hashed_once(world, monkeypatch, capfd):
    world.folder("package")
    assert load().source == f"system package {world.package}"
    monkeypatch.setattr(cache, "verify", None)  # would raise
    data = load()
    assert data.source == f"cache {world.cache}"
    assert world.is_right(data)
    assert capfd.readouterr() == ("", "")


def test_importing_it_starts_no_jax_and_reads_nothing_of_the_network(tmp_path):
    code = (
        "import sys, course_utils.fashion_mnist;"
        "print([name for name in ('jax', 'requests', 'tqdm', 'filelock') if name in sys.modules])"
    )
    said = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True)
    assert said == "[]\n"


# Where the data comes from


def test_sources_are_asked_in_the_documented_order(world, monkeypatch):
    with server(world.packed) as mirror:
        monkeypatch.setenv("FASHION_MNIST_DIR", str(world.folder("own")))
        monkeypatch.setenv("FASHION_MNIST_MIRRORS", mirror.url)
        world.folder("package")
        seen = []
        for gone in ("own", "package", None):
            seen.append(load().source)
            for file in [*world.cache.glob("*ubyte*"), *(world.root / f"{gone}").glob("*")]:
                file.unlink()
        seen.append(load(allow_sample=False).source)
        seen.append(load().source)
    assert seen == [
        f"directory {world.root / 'own'}",
        f"system package {world.package}",
        f"download {mirror.url}",
        f"download {mirror.url}",
        f"cache {world.cache}",
    ]


def test_only_the_sources_named_in_the_environment_are_asked(world, monkeypatch):
    world.folder("package")
    load()
    monkeypatch.setenv("FASHION_MNIST_SOURCES", " package, sample")
    assert load().source.startswith("system package")
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "cache")
    assert load().source.startswith("cache")
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "sample")
    assert load().source.startswith("sample")


def test_without_the_cache_among_the_sources_nothing_is_written(world, monkeypatch):
    world.folder("package")
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "package")
    before = state_of(world.root)
    assert world.is_right(load())
    assert state_of(world.root) == before


def test_an_unknown_source_is_an_error_that_lists_the_valid_ones(world, monkeypatch):
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "cache,usb")
    with pytest.raises(ValueError, match=r"usb; valid are: directory, cache, package, download, s"):
        load()


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "gz"])
def test_the_directory_is_not_touched_and_a_second_load_hashes_nothing(raw, world, monkeypatch):
    own = world.folder("own", raw)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(own))
    before = state_of(own)
    assert world.is_right(load())
    monkeypatch.setattr(fashion_mnist.folder, "verify", None)
    monkeypatch.setattr(cache, "verify", None)
    data = load()
    assert world.is_right(data)
    assert data.source == f"directory {own}"
    assert state_of(own) == before
    assert raw != any(world.cache.glob("*ubyte"))  # raw files are used in place


def test_a_tilde_in_the_directory_is_the_home_folder(world, monkeypatch):
    own = world.folder("own")
    monkeypatch.setenv("HOME", str(own.parent))
    monkeypatch.setenv("FASHION_MNIST_DIR", "~/own")
    data = load()
    assert world.is_right(data)
    assert data.source == "directory ~/own"


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "gz"])
def test_a_file_of_the_directory_that_changed_since_is_noticed(raw, world, monkeypatch, capfd):
    own = world.folder("own", raw)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(own))
    load()
    victim = own / (TRAIN_IMAGES if raw else f"{TRAIN_IMAGES}.gz")
    victim.write_bytes(flip_last_bit(victim.read_bytes()))
    world.folder("package")
    assert world.is_right(load())
    assert f"FASHION_MNIST_DIR={own}: {victim.name} is corrupt" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda folder: None, "No such file or directory"),
        (lambda folder: folder.write_text("a file"), "Not a directory"),
        (lambda folder: folder.mkdir(), "holds none of the files"),
    ],
    ids=["missing", "a file", "empty"],
)
def test_an_unusable_directory_is_named_and_the_next_source_serves(
    prepare, reason, world, monkeypatch, capfd
):
    own = world.root / "own"
    prepare(own)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(own))
    with pytest.raises(DatasetUnavailable, match=f"FASHION_MNIST_DIR={own}: {reason}"):
        load(allow_sample=False)
    world.folder("package")
    assert world.is_right(load())
    assert f"FASHION_MNIST_DIR={own}: {reason}" in capfd.readouterr().err


def test_a_directory_that_lacks_one_file_gives_the_others(world, monkeypatch, capfd):
    own = world.folder("own")
    (own / f"{NAMES[3]}.gz").unlink()
    monkeypatch.setenv("FASHION_MNIST_DIR", str(own))
    world.folder("package")
    data = load()
    assert world.is_right(data)
    assert data.source == f"directory {own} + system package {world.package}"
    assert f"{NAMES[3]} is not there, raw or .gz" in capfd.readouterr().err


def test_an_error_says_that_the_environment_keeps_other_sources_out(world, monkeypatch):
    world.folder("package")
    monkeypatch.setenv("FASHION_MNIST_SOURCES", "cache")
    with pytest.raises(DatasetUnavailable, match="FASHION_MNIST_SOURCES=cache allows no more"):
        load(allow_sample=False)


# Damage


def flip_last_bit(content: bytes) -> bytes:
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(flip_last_bit(gzip.decompress(content)), 1)
    return content[:-1] + bytes([content[-1] ^ 1])


DAMAGES = {
    "truncated": (lambda good: good[: len(good) // 2], "is truncated: 117,608 bytes instead of"),
    "empty": (lambda good: b"", "is (empty|truncated)"),
    "longer": (lambda good: good + b"\0", "is too long"),
    "corrupt": (flip_last_bit, "is corrupt: its SHA-256 is"),
    "foreign": (lambda good: b"PK\3\4" + good, "is not an IDX file of images: it starts with"),
    "labels": (
        lambda good: to_idx(np.zeros(len(good), np.uint8)),
        "is not an IDX file of images: it starts with the number 2049, not 2051",
    ),
    "32x32": (
        lambda good: to_idx(np.zeros((300, 32, 32), np.uint8)),
        "has the shape 300 x 32 x 32 instead of 300 x 28 x 28",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_of_the_cache_is_named_and_replaced(damage, world, capfd):
    spoil, reason = DAMAGES[damage]
    world.folder("package")
    load()
    kept = {name: (world.cache / name).stat().st_ino for name in NAMES}
    victim = world.cache / TRAIN_IMAGES
    victim.write_bytes(spoil(victim.read_bytes()))
    assert world.is_right(load())
    said = capfd.readouterr().err
    assert len(said.splitlines()) == 1
    assert str(victim) in said
    assert re.search(reason, said), said
    assert victim.read_bytes() == world.contents[TRAIN_IMAGES]
    assert all((world.cache / name).stat().st_ino == kept[name] for name in NAMES[1:])
    load()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("place", ["package", "own"])
@pytest.mark.parametrize("packed", [False, True], ids=["raw", "gz"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_elsewhere_is_named_and_never_touched(
    damage, packed, place, world, monkeypatch
):
    spoil, reason = DAMAGES[damage]
    folder = world.folder(place, raw=not packed)
    if place == "own":
        monkeypatch.setenv("FASHION_MNIST_DIR", str(folder))
    bad = spoil(world.contents[TRAIN_IMAGES])
    if packed:
        (folder / f"{TRAIN_IMAGES}.gz").write_bytes(gzip.compress(bad, 1))
    else:
        (folder / TRAIN_IMAGES).write_bytes(bad)
    before = state_of(folder)
    with pytest.raises(DatasetUnavailable, match=f"{TRAIN_IMAGES}(.gz)? {reason}"):
        load(allow_sample=False)
    assert state_of(folder) == before


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda packed: packed[:-100], "is truncated: the .gz ends after"),
        (lambda packed: packed[:5000] + bytes(100) + packed[5100:], "is corrupt"),
        (lambda packed: packed[:-8] + bytes(8), "is corrupt: CRC check failed"),
        (
            lambda packed: b"not gzip" + packed,
            "is not a .gz file: it starts with the bytes 6e 6f 74 20 67 7a 69 70$",
        ),
        (lambda packed: b"", "is not a .gz file: it is empty"),
    ],
    ids=["truncated", "corrupt inside", "wrong checksum", "foreign", "empty"],
)
def test_a_damaged_gz_is_named(spoil, reason, world):
    victim = world.folder("package") / f"{TRAIN_IMAGES}.gz"
    victim.write_bytes(spoil(victim.read_bytes()))
    with pytest.raises(DatasetUnavailable, match=f"(?m){victim.name} {reason}"):
        load(allow_sample=False)


def test_a_gz_that_unpacks_to_much_more_is_not_unpacked_to_its_end(world):
    spec = world.specs[0]
    assert len(idx.gunzip(gzip.compress(bytes(10 * spec.size)), spec)) == spec.size + 1


def test_a_change_that_keeps_size_and_time_is_found_by_verify(world, capfd):
    world.folder("package")
    load()
    victim = world.cache / TRAIN_IMAGES
    status = victim.stat()
    victim.write_bytes(flip_last_bit(victim.read_bytes()))
    os.utime(victim, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not world.is_right(load())
    assert world.is_right(load(verify=True))
    assert "is corrupt" in capfd.readouterr().err
    assert world.is_right(load())


@pytest.mark.parametrize("notes", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b'{"x": 1}'])
def test_damaged_notes_cost_a_hash_and_nothing_else(notes, world, capfd):
    world.folder("package")
    load()
    for name in ("verified.json", "failed.json"):
        (world.cache / name).write_bytes(notes)
    data = load()
    assert world.is_right(data)
    assert data.source == f"cache {world.cache}"
    assert capfd.readouterr().err == ""


def test_a_cache_that_was_copied_elsewhere_needs_no_notes_and_no_hash_after_the_first_load(
    world, monkeypatch
):
    world.folder("package")
    load()
    moved = world.root / "moved"
    (world.root / "xdg").rename(moved)
    monkeypatch.setenv("XDG_CACHE_HOME", str(moved))
    monkeypatch.setattr(cache, "verify", None)
    assert load().source.startswith(f"cache {moved}")


def test_what_killed_processes_left_behind_is_cleaned_up(world):
    world.folder("package")
    world.cache.mkdir(parents=True)
    leftover = world.cache / f".{TRAIN_IMAGES}.4711.tmp"
    leftover.write_bytes(b"half")
    load()
    assert not leftover.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_a_folder_in_place_of_a_file_does_not_hang(world, monkeypatch):
    own = world.folder("own", raw=True)
    (own / TRAIN_IMAGES).unlink()
    os.mkfifo(own / TRAIN_IMAGES)
    (own / NAMES[1]).unlink()
    (own / NAMES[1]).mkdir()
    monkeypatch.setenv("FASHION_MNIST_DIR", str(own))
    with pytest.raises(
        DatasetUnavailable, match=f"{TRAIN_IMAGES} is not a regular file; {NAMES[1]}"
    ):
        load(allow_sample=False)


# Folders that cannot be written


def test_a_full_disk_leaves_no_half_file_and_the_data_goes_to_the_temporary_cache(
    world, monkeypatch, capfd
):
    world.folder("package")
    full_below(monkeypatch, world.cache)
    assert world.is_right(load())
    assert "No space left on device" in capfd.readouterr().err
    assert not any(file.name.endswith(("ubyte", "tmp")) for file in world.cache.iterdir())
    data = load()
    assert world.is_right(data)
    assert data.source == f"cache {world.temporary_cache}"


def test_where_no_disk_has_room_the_data_is_served_from_memory_and_said(world, monkeypatch, capfd):
    with server(world.packed) as mirror:
        monkeypatch.setenv("FASHION_MNIST_MIRRORS", mirror.url)
        full_below(monkeypatch, world.root)
        assert world.is_right(load(allow_sample=False))
    said = [line for line in capfd.readouterr().err.splitlines() if "downloading" not in line]
    assert len(said) == 1
    assert "No space left" in said[0]
    assert said[0].endswith("keeping the data in the memory of this process only")


def full_below(monkeypatch, folder):
    """Let every write below `folder` end as on a full disk: at the latest when it is synced."""
    real = os.fsync

    def fsync(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(folder)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOLCK, "No locks available"), NotImplementedError("no locks here")]
)
def test_a_folder_that_cannot_be_locked_gives_way_to_the_temporary_cache(
    error, world, monkeypatch, capfd
):
    import filelock

    real = filelock.FileLock.acquire

    def acquire(self, *arguments, **options):
        if self.lock_file.startswith(str(world.cache)):
            raise error
        return real(self, *arguments, **options)

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    world.folder("package")
    assert world.is_right(load())
    assert load().source == f"cache {world.temporary_cache}"
    assert (
        f"{error.args[-1]}); keeping the data in {world.temporary_cache}" in capfd.readouterr().err
    )


def test_a_temporary_folder_of_somebody_else_is_not_trusted(world, monkeypatch):
    target = world.root / "elsewhere"
    target.mkdir()
    world.temporary_cache.symlink_to(target)
    assert world.temporary_cache not in keeper.cache_folders()


def test_a_user_without_a_home_gets_the_temporary_cache(world, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(keeper.Path, "home", no_home)
    world.folder("package")
    load()
    assert load().source == f"cache {world.temporary_cache}"


def test_without_home_and_temporary_folder_it_still_loads(world, monkeypatch):
    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no-cache")
    world.folder("package")
    assert world.is_right(load())


# The sample


def test_the_sample_is_real_data_in_equal_parts_and_says_loudly_what_it_is(world, capfd):
    data = load()
    assert data.train_images.shape == (6_000, 28, 28)
    assert data.test_images.shape == (1_000, 28, 28)
    assert np.bincount(data.train_labels).tolist() == [600] * 10
    assert np.bincount(data.test_labels).tolist() == [100] * 10
    assert not data.complete
    assert data.source.startswith("sample")
    said = capfd.readouterr().err
    assert "THIS IS A SAMPLE" in said
    assert "apt-get install dataset-fashion-mnist" in said
    for array in arrays_of(data):
        assert not array.flags.writeable


def test_a_sample_that_is_not_wanted_is_refused_with_every_source_and_the_cure(world, monkeypatch):
    with refusing_url() as first, server({}, lambda request, _: request.head(404)) as second:
        monkeypatch.setenv("FASHION_MNIST_MIRRORS", f"{first} {second.url}")
        monkeypatch.setenv("FASHION_MNIST_DIR", "/no/such/place")
        with pytest.raises(DatasetUnavailable) as refusal:
            load(allow_sample=False)
    lines = str(refusal.value).splitlines()
    assert lines[1] == "  - FASHION_MNIST_DIR=/no/such/place: No such file or directory"
    assert lines[2] == f"  - cache ({world.cache}): empty"
    assert lines[3] == f"  - system package ({world.package}): No such file or directory"
    assert lines[4].startswith(f"  - download ({first}): {TRAIN_IMAGES}.gz: the connection failed")
    assert lines[5] == f"  - download ({second.url}): {TRAIN_IMAGES}.gz: HTTP 404"
    rest = "\n".join(lines[6:])
    for cure in ("allow_sample", "dataset-fashion-mnist", "make data", "_DIR=", "_MIRRORS="):
        assert cure in rest


def test_a_damaged_sample_is_refused_too(world, monkeypatch, tmp_path):
    monkeypatch.setattr(gathering, "SAMPLE_FOLDER", tmp_path)
    with pytest.raises(DatasetUnavailable, match="sample: "):
        load()


def test_the_bundled_files_are_small_and_carry_the_licence():
    assert sum(file.stat().st_size for file in SAMPLE_FOLDER.iterdir()) <= 4 << 20
    licence = (SAMPLE_FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "The MIT License" in licence
    assert "2017 Zalando SE" in licence


# The command that a teacher runs


def test_the_command_says_what_there_is_and_where(world, capfd):
    world.folder("package")
    assert command.main() == 0
    said = capfd.readouterr().out
    assert str(world.package) in said
    assert "300 training + 50 test" in said


def test_the_command_fails_with_the_whole_error_where_only_the_sample_is(world, capfd):
    assert command.main() == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert "How to get the whole data set" in said.err


def test_the_command_repairs_a_cache_that_looks_unchanged(world, capfd):
    world.folder("package")
    load()
    victim = world.cache / TRAIN_IMAGES
    status = victim.stat()
    victim.write_bytes(bytes(status.st_size))
    os.utime(victim, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert command.main() == 0
    assert victim.read_bytes() == world.contents[TRAIN_IMAGES]


# The real data


@needs_debian
def test_debians_package_is_the_published_data_though_its_gz_files_differ(world, monkeypatch):
    monkeypatch.setattr(idx, "FILES", REAL_FILES)
    monkeypatch.setattr(settings, "PACKAGE_FOLDER", DEBIAN)
    data = load(allow_sample=False)
    assert data.complete
    assert data.train_images.shape == (60_000, 28, 28)
    assert np.bincount(data.train_labels).tolist() == [6_000] * 10
    assert np.bincount(data.test_labels).tolist() == [1_000] * 10
    assert data.class_names[data.train_labels[0]] == "Ankle boot"
    again = load()
    assert again.source == f"cache {world.cache}"
    assert again.complete


@needs_debian
def test_the_sample_is_what_its_script_makes_of_the_real_data(world, monkeypatch, tmp_path):
    sample = load()
    monkeypatch.setattr(idx, "FILES", REAL_FILES)
    monkeypatch.setattr(settings, "PACKAGE_FOLDER", DEBIAN)
    whole = load(allow_sample=False)
    for made, bundled in zip(sample_arrays(whole), arrays_of(sample), strict=True):
        np.testing.assert_array_equal(made, bundled)
