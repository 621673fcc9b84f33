"""The head of each namespace of a thread: what get_tuple without an id reads. Set by each put under its lock."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import key, metadata

heads = Table(
    "rp_heads",
    metadata,
    key("space", primary=True),
    key("thread_id", primary=True),
    key("checkpoint_ns", primary=True),
    key("checkpoint_id"),
)
