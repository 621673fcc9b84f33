"""Content by address: split, packed, put in the command's transaction, verified and joined when read."""

from __future__ import annotations

from runtime_persist.contentstore.packing import pack, unpack
from runtime_persist.contentstore.reader import ContentReader
from runtime_persist.contentstore.store import ContentStore
from runtime_persist.contentstore.writer import ContentWriter

__all__ = ["ContentReader", "ContentStore", "ContentWriter", "pack", "unpack"]
