"""The ledger of budgets: one row a call that takes from its run's. The run's counters are projections of it."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.model.budgets import TicketState
from runtime_persist.schema.metadata import key, metadata, number, one_of

tickets = Table(
    "rp_tickets",
    metadata,
    key("space", primary=True),
    key("run_id", primary=True),
    key("operation_id", primary=True),  # tries of one operation share its ticket
    key("state"),
    number("epoch"),  # that reserved it
    number("loops"),  # amounts: reserved, and once it is consumed what was
    number("tool_calls"),
    number("tokens"),
    number("cost_micros"),
    number("reserved_us"),
    number("settled_us", null=True),
    key("invocation", null=True),  # the call of a graph inside the run that its call was made in (None: in none)
    one_of("state", TicketState),
)
