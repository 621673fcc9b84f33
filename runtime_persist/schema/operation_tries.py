"""Operation attempts: one physical try each. ``unknown`` is a fact about a try, never hidden."""

from __future__ import annotations

from sqlalchemy import Index, Table

from runtime_persist.model.states import TryStatus
from runtime_persist.schema.metadata import key, metadata, number, one_of, words

operation_tries = Table(
    "rp_operation_tries",
    metadata,
    key("space", primary=True),
    key("operation_id", primary=True),
    number("try_no", primary=True),
    key("status"),
    key("run_id"),
    key("attempt_id"),
    number("epoch"),
    key("error_type", null=True),
    words("error_text", null=True),
    number("started_us"),
    number("ended_us", null=True),
    one_of("status", TryStatus),
)
Index(
    "ix_rp_operation_tries_run",
    operation_tries.c.space,
    operation_tries.c.run_id,
    operation_tries.c.status,
)
