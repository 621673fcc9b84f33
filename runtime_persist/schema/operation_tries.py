"""Operation attempts: one physical try each. ``unknown`` is a fact about a try, never hidden."""

from __future__ import annotations

from sqlalchemy import Index, Table, literal_column

from runtime_persist.dialects.sql import partial_index
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
    key("error_code", null=True),
    key("provider_request_id", null=True),  # what the outside calls the request
    number("first_output_us", null=True),
    key("first_output_kind", null=True),
    one_of("status", TryStatus),
)
Index(
    "ix_rp_operation_tries_run",
    operation_tries.c.space,
    operation_tries.c.run_id,
    operation_tries.c.status,
)
# What a run tried again, after another one: few, so a run's pages find them without its own first tries.
partial_index(
    "ix_rp_operation_tries_again",
    operation_tries.c.space,
    operation_tries.c.run_id,
    where=operation_tries.c.try_no > literal_column("1"),
)
