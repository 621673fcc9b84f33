"""Facts of a run, appended in the transaction that made them true; also the outbox."""

from __future__ import annotations

from sqlalchemy import Index, Table

from runtime_persist.dialects.sql import partial_index
from runtime_persist.schema.metadata import data, key, metadata, number, transaction

events = Table(
    "rp_events",
    metadata,
    key("space", primary=True),
    key("run_id", primary=True),
    number("seq", primary=True),
    key("type"),  # aggregate.past_tense
    key("actor"),
    key("attempt_id", null=True),
    number("epoch", null=True),
    data("payload", null=True),  # msgpack of a few allow-listed fields
    number("created_us"),
    transaction("position", null=True),  # of its transaction in the space's outbox: see commands/parts/positions.py
    key("dedupe_key", null=True),  # of a report: the same one is one event
)
Index("ix_rp_events_position", events.c.space, events.c.position)
partial_index(
    "uq_rp_events_dedupe_key",
    events.c.space,
    events.c.run_id,
    events.c.dedupe_key,
    where=events.c.dedupe_key.is_not(None),
    unique=True,
)
