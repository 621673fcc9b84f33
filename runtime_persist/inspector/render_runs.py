"""Runs and their events in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from runtime_persist.inspector.layout import ByWidth, pairs, stacked
from runtime_persist.inspector.render import moment, status, table
from runtime_persist.model.budgets import money

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from runtime_persist.model.budgets import Spent
    from runtime_persist.model.records import EventRecord, RunRecord

_WIDE_COLUMNS = 150


def runs_table(runs: list[RunRecord]) -> RenderableType:
    """Return runs as a table, newest first; two lines each where that is too wide."""
    made = table("runs", "run", "graph", "thread", "status", "attempts", "epoch", "started", "why")
    for run in runs:
        made.add_row(
            run.run_id,
            run.graph,
            run.thread_id,
            status(run.shown),
            str(run.attempt_no),
            str(run.epoch),
            moment(run.created_us),
            _why(run),
        )
    return ByWidth(made, stacked("runs", [_stacked(run) for run in runs]), _WIDE_COLUMNS)


def _stacked(run: RunRecord) -> tuple[Text, str]:
    head = Text(f"{run.run_id}  ").append_text(status(run.shown)).append(f"  {_why(run)}".rstrip())
    return head, f"{moment(run.created_us)}  {run.graph}  attempt {run.attempt_no}  thread {run.thread_id}"


def _why(run: RunRecord) -> str:
    return run.error_code or run.stop_reason or ""


def run_record(run: RunRecord) -> Table:
    """Return one run, a line for each thing."""
    lease = f"epoch {run.epoch}, {run.phase}, worker {run.worker_id or '–'}, until {moment(run.expires_us)}"
    shown = status(run.shown)
    if run.shown != run.status:
        shown.append(f"  (stored: {run.status})", style="dim")
    rows: list[tuple[str, RenderableType]] = [
        ("run", run.run_id),
        ("graph", run.graph if run.graph_version is None else f"{run.graph} (version {run.graph_version})"),
        ("thread", run.thread_id),
        ("status", shown),
        ("lease", lease),
        ("history", f"attempts: {run.attempt_no}, failures: {run.failures}, takeovers: {run.takeovers}"),
        ("started", moment(run.created_us)),
    ]
    times = (("ended", run.finished_us), ("deadline", run.deadline_us), ("next attempt", run.next_attempt_us))
    rows += [(name, moment(us)) for name, us in times if us is not None]
    said = (("key", run.idempotency_key), ("retry of", run.retry_of_run_id), ("stopped for", run.stop_reason))
    rows += [(name, value) for name, value in said if value is not None]
    rows += [(f"budget: {kind}", _spent(kind, spent)) for kind, spent in run.budget.items()]
    if run.error_code is not None:
        rows.append(("error", Text(f"{run.error_code}: {run.error_summary}", style="red")))
    return pairs(*rows)


def _spent(kind: str, spent: Spent) -> str:
    """Return how much of a kind of a budget is taken."""
    limit, reserved, consumed = (str(money(one) if kind == "cost_micros" else one) for one in spent)
    return f"{consumed} of {limit} consumed, {reserved} reserved"


def event_line(event: EventRecord) -> str:
    """Return an event as one line."""
    actor = event.actor_type if event.actor_id is None else f"{event.actor_type}:{event.actor_id}"
    payload = "  ".join(f"{name}={value}" for name, value in event.payload.items())
    return f"{event.seq:>4}  {moment(event.created_us)}  {event.type:28}  {actor}  {payload}".rstrip()
