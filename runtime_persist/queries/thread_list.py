"""Threads as a list, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from runtime_persist.dialects.sql import bind, number, words
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.schema import heads, threads

if TYPE_CHECKING:
    from collections.abc import Sequence

_T, _H = threads.c, heads.c

_HEAD = (
    select(_H.checkpoint_id)
    .where(_H.space == _T.space, _H.thread_id == _T.thread_id, _H.checkpoint_ns == words("root"))
    .scalar_subquery()
)
LIST_THREADS = Query(
    "list_threads",
    select(_T.thread_id, _T.generation, _T.owner_run_id, _T.run_no, _T.created_us, _HEAD.label("checkpoint_id"))
    .where(_T.space == bind(_T.space), _T.thread_id > words("after"))
    .order_by(_T.thread_id)
    .limit(number("page_rows")),
)


def listing(space: str, after: str, rows: int) -> Plan[Sequence[Row]]:
    """Read the threads behind a thread id, in the order of their ids."""
    return (yield from many(LIST_THREADS, space=space, after=after, page_rows=rows, root=""))
