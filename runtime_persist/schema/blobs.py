"""Content by address, once per owner. Immutable: a row is inserted or found, never changed."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

blobs = Table(
    "rp_blobs",
    metadata,
    key("space", primary=True),
    key("owner", primary=True),
    data("address", primary=True),
    number("size"),  # bytes of the content as it was given
    data("content"),  # packed: a codec byte, then the bytes
    number("created_us"),
)
