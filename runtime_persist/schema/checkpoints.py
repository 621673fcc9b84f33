"""Checkpoints. The row with its fingerprint is the receipt of the command that wrote it."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

checkpoints = Table(
    "rp_checkpoints",
    metadata,
    key("space", primary=True),
    key("thread_id", primary=True),
    key("checkpoint_ns", primary=True),
    key("checkpoint_id", primary=True),
    key("parent_id", null=True),
    key("run_id", null=True),  # NULL: written without a run (L0)
    number("epoch", null=True),
    data("body"),  # the checkpoint without its values, and the manifest: channel -> payload reference
    data("metadata"),
    data("fingerprint"),
    number("created_us"),
)
