"""Reads what pages show: bounded, by key, without the application's classes, and without writing anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runtime_persist.adapters.workflow import encoding
from runtime_persist.adapters.workflow.values import raw_view
from runtime_persist.engine import payloads
from runtime_persist.errors import (
    CheckpointCorrupt,
    CheckpointNotFound,
    RunNotFound,
    RuntimePersistError,
    ThreadNotFound,
)
from runtime_persist.inspector.bundle import load_bundle
from runtime_persist.inspector.operations import load_operations
from runtime_persist.inspector.thread import load_thread
from runtime_persist.inspector.tickets import load_tickets
from runtime_persist.inspector.why import load_why
from runtime_persist.model.questions import questions_of
from runtime_persist.model.records import EventRecord, RunRecord
from runtime_persist.queries import checkpoints as checkpoint_queries
from runtime_persist.queries import events as event_queries
from runtime_persist.queries import run_list, run_pages
from runtime_persist.queries import runs as run_queries
from runtime_persist.runtime.recovering import read_plan
from runtime_persist.ui import changes
from runtime_persist.ui.page import ROWS_MAX, RunPage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.inspector.thread import ThreadView
    from runtime_persist.model.payload import PayloadRef
    from runtime_persist.model.questions import Question
    from runtime_persist.plan import Row
    from runtime_persist.ui.changes import Change

RUNS_MAX: Final = 50
"""Runs of a page of the list."""
_NUMBER_MAX: Final = 2**62


@dataclass(frozen=True, slots=True)
class RunsPage:
    """A page of the list of runs. ``next_before``: where the next one begins (None: there is none)."""

    runs: list[RunRecord]
    next_before: str | None
    now_us: int | None


def load_runs(engine: Engine, wanted: run_list.Wanted, before: str | None, rows: int = RUNS_MAX) -> Flow[RunsPage]:
    """Read a page of the runs that are wanted, newest first."""
    found: Sequence[Row] = yield engine.coordinator.read(
        "list_runs_page", lambda: run_list.page(engine.space, wanted, before, rows + 1)
    )
    shown = found[:rows]
    return RunsPage(
        [RunRecord.of(row) for row in shown],
        shown[-1]["run_id"] if len(found) > rows else None,
        shown[0]["now_us"] if shown else None,
    )


def load_run(engine: Engine, serde: SerializerProtocol, run_id: str) -> Flow[RunPage]:
    """Read everything that the page of a run shows (raises RunNotFound)."""
    raw = raw_view(serde)
    view = yield from load_bundle(engine, raw, run_id, rows_max=ROWS_MAX)
    why = yield from load_why(engine, raw, run_id)
    plan = yield from read_plan(engine, run_id)
    ledger = yield from load_tickets(engine, run_id, ROWS_MAX, held=False)
    thread = None
    if view.checkpoints:
        last = max(one.checkpoint_id for one in view.checkpoints)
        thread = yield from _thread(engine, view.run.thread_id, last)
    questions: list[Question] = []
    if isinstance(view.question, dict):
        row: Row | None = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id))
        questions = [] if row is None or row["question"] is None else questions_of(row, view.question)
    return RunPage(view, why, plan, ledger, thread, questions=questions)


def _thread(engine: Engine, thread_id: str, checkpoint_id: str) -> Flow[ThreadView | None]:
    """Read a thread by size as of a checkpoint (None: it was pruned meanwhile)."""
    try:
        return (yield from load_thread(engine, thread_id, checkpoint_id=checkpoint_id))
    except ThreadNotFound:
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two checkpoints of a namespace, and the channels that differ."""

    checkpoint_ns: str
    first: str
    second: str
    changes: list[Change]


def load_comparison(
    engine: Engine, serde: SerializerProtocol, thread_id: str, ns: str, first: str, second: str
) -> Flow[Comparison]:
    """Compare two checkpoints of a thread's namespace.

    Raises:
        CheckpointNotFound: one of them is not stored.
        CheckpointCorrupt, UnknownFormat: one of them cannot be read.

    """
    raw = raw_view(serde)
    before = yield from _refs(engine, thread_id, ns, first)
    after = yield from _refs(engine, thread_id, ns, second)
    values: dict[PayloadRef, str] = {}
    for ref, channel in changes.wanted(before, after).items():
        values[ref] = yield from _value(engine, raw, ref, channel)
    return Comparison(ns, first, second, changes.compared(before, after, values))


def _refs(engine: Engine, thread_id: str, ns: str, checkpoint_id: str) -> Flow[Mapping[str, PayloadRef]]:
    body: bytes | None = yield engine.coordinator.read(
        "read_checkpoint", lambda: checkpoint_queries.body(engine.space, thread_id, ns, checkpoint_id)
    )
    if body is None:
        msg = f"there is no checkpoint {checkpoint_id!r} in thread {thread_id!r}, namespace {ns!r}"
        raise CheckpointNotFound(msg, thread_id=thread_id, checkpoint_id=checkpoint_id)
    try:
        return encoding.refs_of(body)
    except RuntimePersistError:
        raise
    except Exception as error:
        msg = f"the manifest of checkpoint {checkpoint_id} cannot be read: {type(error).__name__}"
        raise CheckpointCorrupt(msg, checkpoint_id=checkpoint_id) from error


def _value(engine: Engine, raw: SerializerProtocol, ref: PayloadRef, channel: str) -> Flow[str]:
    """Return a value as text; of one that cannot be loaded here, why."""
    try:
        value: Any = yield from payloads.decode(engine, raw, ref.encoded(), f"channel {channel!r}")
    except RuntimePersistError as error:
        return f"({error.code}: {error.message})"
    return changes.said(value)


def number_of(text: str | None, otherwise: int) -> int:
    """Return the number that a part of an address says, at most what a column can hold."""
    return min(int(text), _NUMBER_MAX) if text and text.isascii() and text.isdecimal() else otherwise


# --- older ones, a page at a time -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class History:
    """A page of what a run did earlier; ``next_before``: where the next one begins (None: there is none)."""

    run: RunRecord
    kind: str
    rows: list[Any]
    next_before: str | None
    now_us: int


def load_history(engine: Engine, run_id: str, kind: str, before: str | None) -> Flow[History]:
    """Read a page of the ``operations``, ``checkpoints`` or ``events`` of a run, newest first (raises RunNotFound)."""
    row: Row | None = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id))
    if row is None:
        raise _no_run(engine, run_id)
    rows: list[Any]
    if kind == "operations":
        rows = yield from load_operations(engine, run_id, ROWS_MAX + 1, unknown=False, before=before)
        keys = [one.operation_id for one in rows]
    elif kind == "checkpoints":
        rows = yield engine.coordinator.read(
            "read_checkpoints_of_run",
            lambda: run_pages.newest_checkpoints(engine.space, row["thread_id"], run_id, ROWS_MAX + 1, before=before),
        )
        keys = [one["checkpoint_id"] for one in rows]
    else:
        seq = number_of(before, row["event_seq"] + 1)
        rows = yield from _events(engine, run_id, max(seq - 1 - ROWS_MAX, 0), seq)
        keys = [str(one.seq) for one in rows]
        more = bool(rows) and rows[-1].seq > 1
        return History(RunRecord.of(row), kind, rows, keys[-1] if more else None, row["now_us"])
    more = len(rows) > ROWS_MAX
    return History(RunRecord.of(row), kind, rows[:ROWS_MAX], keys[ROWS_MAX - 1] if more else None, row["now_us"])


def _events(engine: Engine, run_id: str, after: int, before: int) -> Flow[list[EventRecord]]:
    """Read the events between two numbers, newest first: they have no gaps."""
    found: Sequence[Row] = yield engine.coordinator.read(
        "read_events", lambda: event_queries.of_run(engine.space, run_id, after, max(before - 1 - after, 0))
    )
    return [EventRecord.of(one) for one in reversed(found)]


@dataclass(frozen=True, slots=True)
class News:
    """What is new of a run: its events behind a number, oldest first, and the number of the last that is known."""

    page: RunPage
    events: list[EventRecord]
    after: int


def load_news(engine: Engine, serde: SerializerProtocol, run_id: str, after: int, shown: str) -> Flow[News | None]:
    """Read what happened to a run since an event, None: nothing, and it is shown as before (raises RunNotFound)."""
    row: Row | None = yield engine.coordinator.read("read_run", lambda: run_queries.run(engine.space, run_id))
    if row is None:
        raise _no_run(engine, run_id)
    if row["event_seq"] <= after and RunRecord.of(row).shown == shown:
        return None
    found: Sequence[Row] = yield engine.coordinator.read(
        "read_events", lambda: event_queries.of_run(engine.space, run_id, after, ROWS_MAX)
    )
    events = [EventRecord.of(one) for one in found]
    return News((yield from load_run(engine, serde, run_id)), events, events[-1].seq if events else after)


def _no_run(engine: Engine, run_id: str) -> RunNotFound:
    msg = f"there is no run {run_id!r} in space {engine.space!r}"
    return RunNotFound(msg, run_id=run_id)
