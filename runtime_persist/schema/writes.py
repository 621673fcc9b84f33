"""Task writes (pending writes). No foreign key: writes legitimately arrive before their checkpoint row."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

writes = Table(
    "rp_writes",
    metadata,
    key("space", primary=True),
    key("thread_id", primary=True),
    key("checkpoint_ns", primary=True),
    key("checkpoint_id", primary=True),
    key("task_id", primary=True),
    number("idx", primary=True),
    key("task_path"),
    key("channel"),
    data("value"),  # payload reference
    data("fingerprint"),
    key("run_id", null=True),
    number("epoch", null=True),
)
