"""Checkpoints. The row with its fingerprint is the receipt of the command that wrote it."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.dialects.sql import partial_index
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
    key("run_ref", null=True),  # metadata's run_id: what delete_for_runs goes by
    number("hidden"),  # 1: kept only as history of a DeltaChannel; not listed, not loadable
    number("orphan"),  # 1: its parent was pruned (or is hidden): shown without one
    number("created_us"),
)
partial_index(
    "ix_rp_checkpoints_run_ref", checkpoints.c.space, checkpoints.c.run_ref, where=checkpoints.c.run_ref.is_not(None)
)
