"""How content lies in its row: a codec byte, then the bytes as they are or compressed with zstd."""

from __future__ import annotations

import threading
from typing import Final

import zstandard

from runtime_persist.errors import CheckpointCorrupt, UnknownFormat
from runtime_persist.model import limits

_RAW: Final = b"\0"
_ZSTD: Final = b"\1"
_ZSTD_LEVEL: Final = 3
_ZSTD_LEVEL_SMALL: Final = 1
_SMALL_BYTES_MAX: Final = 4_096
"""Up to here the lowest level makes nothing larger (a message, the body of a checkpoint), and takes a quarter less."""
_BLOCK_CONTENT_MAX: Final = 131_072
"""Most bytes that one block of a zstd frame stands for …"""
_BLOCK_BYTES_MIN: Final = 4
"""… and the fewest it has."""


class _Codecs(threading.local):
    """One compressor a thread: shared by threads they fail with "Src size is incorrect"."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
        self.small = zstandard.ZstdCompressor(level=_ZSTD_LEVEL_SMALL)
        self.decompressor = zstandard.ZstdDecompressor()


_codecs = _Codecs()


def pack(content: bytes | memoryview) -> bytes:
    """Return the stored form of content; compressed only when it is large enough and gets smaller."""
    size = len(content)
    if size >= limits.COMPRESS_BYTES_MIN:
        compressor = _codecs.small if size <= _SMALL_BYTES_MAX else _codecs.compressor
        compressed = compressor.compress(content)
        if len(compressed) < size:
            return _ZSTD + compressed
    return _RAW + content


def unpack(stored: bytes) -> bytes:
    """Return the content of a stored form (raises as :func:`opened`)."""
    return bytes(opened(stored))


def opened(stored: bytes) -> bytes | memoryview:
    """Return the content of a stored form: a view of it, when it is not compressed.

    Raises:
        CheckpointCorrupt: the compressed bytes do not decompress.
        UnknownFormat: a codec this code does not know.

    """
    codec, data = stored[:1], memoryview(stored)[1:]
    if codec == _RAW:
        return data
    if codec == _ZSTD:
        try:
            # The frame says how much memory it wants: a flipped bit there must not ask for gigabytes.
            if zstandard.frame_content_size(data) > (len(data) // _BLOCK_BYTES_MIN + 1) * _BLOCK_CONTENT_MAX:
                msg = "compressed content claims a size that it cannot have"
                raise CheckpointCorrupt(msg)
            return _codecs.decompressor.decompress(data)
        except (zstandard.ZstdError, MemoryError) as error:
            msg = f"compressed content does not decompress: {error}"
            raise CheckpointCorrupt(msg) from error
    msg = f"content codec {codec!r} is not known"
    raise UnknownFormat(msg, codec=codec.hex())
