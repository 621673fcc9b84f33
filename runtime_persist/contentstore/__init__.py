"""Content by address: packed, addressed, put in the command's transaction, verified when read."""

from __future__ import annotations

from runtime_persist.contentstore.packing import pack, unpack
from runtime_persist.contentstore.store import ContentWriter, checked

__all__ = ["ContentWriter", "checked", "pack", "unpack"]
