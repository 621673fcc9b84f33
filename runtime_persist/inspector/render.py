"""A recovery bundle in the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from runtime_persist.inspector.bundle import OperationView, RecoveryBundle
    from runtime_persist.inspector.database import DatabaseView
    from runtime_persist.model.records import RunRecord

_COLOURS = {
    "succeeded": "green",
    "running": "cyan",
    "starting": "cyan",
    "failed": "red",
    "lost": "red",
    "unknown": "bold magenta",
    "waiting_approval": "yellow",
    "cancelled": "yellow",
    "yielded": "yellow",
    "queued": "blue",
}


def status(text: str) -> Text:
    """Return a status in its colour."""
    return Text(text, style=_COLOURS.get(text, ""))


def moment(us: int | None) -> str:
    """Return a time of the database clock (microseconds) as UTC."""
    if not us:
        return "–"
    return datetime.fromtimestamp(us / 1_000_000, UTC).strftime("%H:%M:%S.%f")[:-3]


def table(title: str, *columns: str) -> Table:
    """Return an empty table in the house style."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
    )
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def runs_table(runs: list[RunRecord]) -> Table:
    """Return runs as a table, newest first."""
    made = table("runs", "run", "graph", "thread", "status", "attempts", "epoch", "started", "why")
    for run in runs:
        why = run.error_code or run.stop_reason or ""
        made.add_row(
            run.run_id,
            run.graph,
            run.thread_id,
            status(run.shown),
            str(run.attempt_no),
            str(run.epoch),
            moment(run.created_us),
            why,
        )
    return made


def bundle(found: RecoveryBundle) -> RenderableType:
    """Return a whole bundle."""
    parts: list[RenderableType] = [_head(found), _attempts(found), _journal(found), _checkpoints(found)]
    if found.question is not None:
        parts.insert(
            1,
            Panel(str(found.question), title="it asks", title_align="left", border_style="yellow"),
        )
    parts.append(_recovery(found))
    spaced: list[RenderableType] = []
    for part in parts:
        spaced += [part, Text("")]
    return Group(*spaced)


def _head(found: RecoveryBundle) -> Panel:
    run = found.run
    lines = Text()
    lines.append("status   ").append_text(status(run.shown)).append(
        f"  (stored: {run.status}, control: {run.control})\n",
    )
    lines.append(f"graph    {run.graph}\nthread   {run.thread_id}\n")
    lines.append(
        f"lease    epoch {run.epoch}, {run.phase}, worker {run.worker_id or '–'}, until {moment(run.expires_us)}\n",
    )
    lines.append(f"history  attempts: {run.attempt_no}, takeovers: {run.takeovers}, events: {len(found.events)}")
    lines.append_text(_database(found.database))
    if run.error_code:
        lines.append(f"\nerror    {run.error_code}: {run.error_summary}", style="red")
    return Panel(lines, title=f"run {run.run_id}", title_align="left")


def _database(found: DatabaseView) -> Text:
    line = Text(f"\ndatabase {found.dialect} {found.version}, {found.url}")
    if found.warning:
        line.append(f"\nwarning  {found.warning}", style="yellow")
    return line


def _attempts(found: RecoveryBundle) -> Table:
    made = table("attempts", "no", "cause", "epoch", "status", "worker", "start fence", "ended", "reason")
    for attempt in found.attempts:
        made.add_row(
            str(attempt.attempt_no),
            attempt.cause,
            str(attempt.epoch or "–"),
            status(attempt.status),
            attempt.worker_id or "–",
            moment(attempt.start_requested_us),
            moment(attempt.ended_us),
            attempt.error_code or attempt.termination_reason or "",
        )
    return made


def _journal(found: RecoveryBundle) -> RenderableType:
    tree = Tree(Text(f"operation journal ({len(found.operations)})", style="bold"))
    for operation in found.operations:
        tree.add(_operation(operation))
    return tree


def _operation(operation: OperationView) -> Tree:
    head = Text().append_text(status(operation.status)).append(f"  {operation.name}({operation.request})")
    head.append(f"  on_unknown={operation.on_unknown}  key {operation.idempotency_key}", style="dim")
    branch = Tree(head)
    for tried in operation.tries:
        line = Text(f"try {tried.try_no}  epoch {tried.epoch}  ").append_text(status(tried.shown))
        line.append(f"  {moment(tried.started_us)} → {moment(tried.ended_us)}", style="dim")
        if tried.error_type:
            line.append(f"  {tried.error_type}", style="red")
        branch.add(line)
    return branch


def _checkpoints(found: RecoveryBundle) -> Table:
    made = table(f"checkpoints ({len(found.checkpoints)})", "step", "source", "id", "epoch", "stored")
    for checkpoint in found.checkpoints:
        made.add_row(
            "–" if checkpoint.step is None else str(checkpoint.step),
            (checkpoint.checkpoint_ns + " " if checkpoint.checkpoint_ns else "") + (checkpoint.source or ""),
            checkpoint.checkpoint_id,
            str(checkpoint.epoch or "–"),
            moment(checkpoint.created_us),
        )
    return made


def _recovery(found: RecoveryBundle) -> Table:
    made = table("what recovery would do", "subject", "situation", "action", "outside")
    for action in found.recovery:
        made.add_row(action.subject, action.situation, action.action, action.outside)
    return made
