"""Content by address, once per owner. The content is immutable: it is inserted or found, and removed when unused."""

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
    number("created_us"),
    number("unused_us", null=True),  # a collection found that no row refers to it; NULL again when it is sent
    data("content"),  # packed: a codec byte, then the bytes; last, because SQLite reads over what stands before
)
