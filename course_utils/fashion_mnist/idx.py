"""What the four files are: the IDX format, and the bytes that Zalando published."""

import gzip
import hashlib
import io
import math
import mmap
import zlib
from dataclasses import dataclass

import numpy as np

Buffer = bytes | mmap.mmap  # what a file's content comes as: read, or mapped

_GZIP_MAGIC = b"\x1f\x8b"


class WrongData(ValueError):
    """Bytes that are not what a file should hold; the message ("is truncated: ...") says why."""


@dataclass(frozen=True)
class FileSpec:
    """One IDX file of unsigned bytes: its name, its dimensions and the hash of its content.

    The hash is of the *decompressed* bytes: Debian packs the same data into other .gz files.
    """

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def magic(self) -> int:
        """2051 for images, 2049 for labels: 0x08 means unsigned bytes, then the dimensions."""
        return 0x0800 + len(self.shape)

    @property
    def header_size(self) -> int:
        """Bytes before the data: the magic number, then one length for each dimension."""
        return 4 + 4 * len(self.shape)

    @property
    def size(self) -> int:
        """Bytes of the whole file, decompressed."""
        return self.header_size + math.prod(self.shape)

    @property
    def gz_limit(self) -> int:
        """More bytes than any sane .gz of this file has, so a server can be cut off."""
        return self.size + self.size // 100 + 1024


FILES = (
    FileSpec(
        "train-images-idx3-ubyte",
        (60_000, 28, 28),
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    FileSpec(
        "train-labels-idx1-ubyte",
        (60_000,),
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    FileSpec(
        "t10k-images-idx3-ubyte",
        (10_000, 28, 28),
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    FileSpec(
        "t10k-labels-idx1-ubyte",
        (10_000,),
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
)


def parse(content: Buffer, spec: FileSpec) -> np.ndarray:
    """View the data of a verified file as uint8 of `spec.shape`: no copy, read-only if `content` is."""
    return np.frombuffer(content, np.uint8, offset=spec.header_size).reshape(spec.shape)


def verify(content: Buffer, spec: FileSpec) -> None:
    """Raise WrongData, saying in what way, unless `content` is the published file, byte for byte."""
    size = memoryview(content).nbytes
    header = np.frombuffer(content, ">u4", min(spec.header_size, size) // 4).tolist()
    if header and header[0] != spec.magic:
        kind = "images" if len(spec.shape) == 3 else "labels"
        raise WrongData(
            f"is not an IDX file of {kind}: it starts with the number {header[0]}, not {spec.magic}"
        )
    if len(header) > len(spec.shape) and tuple(header[1:]) != spec.shape:
        raise WrongData(f"has the shape {_times(header[1:])} instead of {_times(spec.shape)}")
    if size != spec.size:
        fault = "is truncated" if size < spec.size else "is too long"
        raise WrongData(f"{fault}: {size:,} bytes instead of {spec.size:,}")
    digest = hashlib.sha256(content).hexdigest()
    if digest != spec.sha256:
        raise WrongData(
            f"is corrupt: its SHA-256 is {digest[:12]}..., not the published {spec.sha256[:12]}..."
        )


def gunzip(packed: bytes, spec: FileSpec) -> bytes:
    """Decompress a .gz to no more than one byte above `spec.size`; WrongData says what it is instead."""
    if not packed.startswith(_GZIP_MAGIC):
        if packed[:512].lstrip().startswith(b"<"):
            raise WrongData("is an HTML page, not a .gz file (a proxy's or a log-in page?)")
        start = f"it starts with the bytes {packed[:8].hex(' ')}" if packed else "it is empty"
        raise WrongData(f"is not a .gz file: {start}")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unpacked:
            return unpacked.read(spec.size + 1)
    except EOFError:
        raise WrongData(f"is truncated: the .gz ends after {len(packed):,} bytes") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise WrongData(f"is corrupt: {error}") from None


def _times(shape: tuple[int, ...] | list[int]) -> str:
    return " x ".join(f"{length:,}" for length in shape)
