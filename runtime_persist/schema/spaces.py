"""One row a tenant, with the random key that its hashes are made with."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

spaces = Table(
    "rp_spaces",
    metadata,
    key("space", primary=True),
    data(
        "secret",
    ),  # 32 random bytes: content addresses, thread hashes and redacted arguments are keyed with it
    number("created_us"),
)
