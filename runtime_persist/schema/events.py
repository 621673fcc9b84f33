"""Facts of a run, appended in the transaction that made them true; also the outbox."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number

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
)
