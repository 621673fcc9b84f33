"""Cursors: how far a consumer of the outbox has come; they only move forward."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import key, metadata, number

cursors = Table(
    "rp_cursors",
    metadata,
    key("space", primary=True),
    key("consumer", primary=True),
    number("position"),  # of the last acknowledged event: the outbox is read in the order position, run_id, seq
    key("run_id"),
    number("seq"),
    number("acked_us"),
    key("command_id"),  # of the acknowledgement that put it there: this row is its receipt
)
