"""Runs as a list to look through: filtered, a page at a time, newest first.

A page is found by key. Ids of runs are UUIDv7, so they are in the order in which their callers made them, and the
primary key has that order: the first page of many runs costs what a page costs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, and_, bindparam, case, func, or_, select
from sqlalchemy.types import BigInteger

from runtime_persist.dialects.sql import bind, constant, now_us, words
from runtime_persist.model.evidence import Observed
from runtime_persist.model.states import FINAL_RUN, Control, LeasePhase, RunStatus
from runtime_persist.plan import Plan, Query, Row, many
from runtime_persist.queries.checkpoints import LAST
from runtime_persist.schema import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

_R = runs.c
_ESCAPE: Final = "!"


def _is(status: RunStatus) -> ColumnElement[bool]:
    return _R.status == constant(status.value)


_stale = and_(_R.phase != constant(LeasePhase.RELEASED.value), _R.expires_us <= now_us())
_dispatching = _is(RunStatus.DISPATCHING)
# As model/shown.py has it (a test compares them in every state).
_shown = case(
    (_R.status.in_([constant(status.value) for status in sorted(FINAL_RUN)]), _R.status),
    (
        or_(
            _is(RunStatus.LOST),
            and_(_stale, or_(_is(RunStatus.RUNNING), and_(_dispatching, _R.observed_state.is_not(None)))),
        ),
        constant("unknown"),
    ),
    (_R.control == constant(Control.STOPPING.value), constant("cancelling")),
    (
        and_(_dispatching, ~_stale, _R.observed_state == constant(Observed.ACCEPTED.value)),
        constant("waiting_runtime"),
    ),
    (and_(_dispatching, ~_stale), constant("starting")),
    (_dispatching, constant(RunStatus.QUEUED.value)),
    else_=_R.status,
)


def _has(*columns: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that one of the columns has the text in it, in small letters or capitals."""
    return or_(*(func.lower(column).like(words("text"), escape=_ESCAPE) for column in columns))


LIST_PAGE = Query(
    "list_runs_page",
    select(runs, now_us().label("now_us"))
    .where(
        _R.space == bind(_R.space),
        _R.run_id < words("before"),
        or_(words("shown").is_(None), _shown == words("shown")),
        or_(words("graph_name").is_(None), _R.graph == words("graph_name")),
        or_(words("thread").is_(None), _R.thread_id == words("thread")),
        or_(
            words("text").is_(None),
            _has(_R.run_id, _R.thread_id, _R.graph, _R.idempotency_key, _R.error_code, _R.error_summary),
        ),
    )
    .order_by(_R.run_id.desc())
    .limit(bindparam("page_rows", type_=BigInteger())),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are looked for; None: any.

    Attributes:
        shown: their status as people are told it (``unknown`` among them).
        graph_name: name of their graph.
        thread: their thread.
        text: what is in one of their texts: id, thread, graph, key, error.

    """

    shown: str | None = None
    graph_name: str | None = None
    thread: str | None = None
    text: str | None = None


def page(space: str, wanted: Wanted, before: str | None, rows: int) -> Plan[Sequence[Row]]:
    """Read the newest runs that are wanted, of those before a run (None: from the newest on)."""
    said = {**asdict(wanted), "text": None if wanted.text is None else _pattern(wanted.text)}
    return (yield from many(LIST_PAGE, space=space, before=before or LAST, page_rows=rows, **said))


def _pattern(text: str) -> str:
    """Return the pattern of LIKE for a text anywhere; letters beyond ASCII are as they are, as in both databases."""
    small = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    for sign in (_ESCAPE, "%", "_"):
        small = small.replace(sign, _ESCAPE + sign)
    return f"%{small}%"
