"""The execution domains of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from runtime_persist.dialects.sql import bind
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import domains

if TYPE_CHECKING:
    from collections.abc import Sequence

_D = domains.c

READ_DOMAINS = Query(
    "read_domains",
    select(domains)
    .where(_D.space == bind(_D.space), _D.run_id == bind(_D.run_id))
    .order_by(_D.opened_us, _D.domain_id),
)


def of_run(space: str, run_id: str) -> Plan[Sequence[Row]]:
    """Read the domains of a run, oldest first."""
    return (yield from many(READ_DOMAINS, space=space, run_id=run_id))
