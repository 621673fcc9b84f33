"""Receipts of commands that leave no row of their own that could serve as one. Immutable."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

receipts = Table(
    "rp_receipts",
    metadata,
    key("space", primary=True),
    key("command_id", primary=True),
    key("kind"),
    key("run_id", null=True),
    number("epoch", null=True),
    data("fingerprint"),
    data("result"),  # msgpack
    number("committed_us"),
)
