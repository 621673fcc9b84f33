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
    from collections.abc import Sequence

    from runtime_persist.inspector.bundle import BundleView, OperationView
    from runtime_persist.inspector.database import DatabaseView
    from runtime_persist.model.domains import Domain

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
    "open": "bold magenta",  # of an execution domain
    "revoked": "green",
    "alive": "green",
    "draining": "yellow",
    "gone": "dim",
}

_LOCATION = ("host", "pid", "path")
"""Fields of a handle that say where a domain is; of handles without them all fields are shown."""


def status(text: str) -> Text:
    """Return a status in its colour."""
    return Text(text, style=_COLOURS.get(text, ""))


def moment(us: int | None) -> str:
    """Return a time of the database clock (microseconds) as UTC; with its date, unless that is today's."""
    if not us:
        return "–"
    at = datetime.fromtimestamp(us / 1_000_000, UTC)
    if at.date() != datetime.now(UTC).date():
        return at.strftime("%Y-%m-%d %H:%M:%S")
    return at.strftime("%H:%M:%S.%f")[:-3]


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


def domains_table(found: Sequence[Domain]) -> Table:
    """Return a run's execution domains with their receipts."""
    title = f"execution domains ({len(found)})"
    made = table(title, "domain", "kind", "where", "epoch", "state", "proof", "by", "when")
    for domain in found:
        receipt = domain.receipt
        state = status(domain.state.value)
        made.add_row(
            domain.domain_id,
            domain.kind,
            _where(domain),
            str(domain.epoch),
            state,
            "–" if receipt is None else f"{receipt.how.value}: {receipt.saw}",
            "–" if receipt is None else receipt.by,
            moment(None if receipt is None else receipt.at_us),
        )
    return made


def _where(domain: Domain) -> str:
    named = {name: value for name, value in domain.handle.items() if name in _LOCATION} or domain.handle
    return ", ".join(f"{name} {value}" for name, value in named.items())


def bundle(found: BundleView) -> RenderableType:
    """Return a whole bundle."""
    parts: list[RenderableType] = [_head(found), _attempts(found), _journal(found), _checkpoints(found)]
    if found.question is not None:
        parts.insert(
            1,
            Panel(str(found.question), title="it asks", title_align="left", border_style="yellow"),
        )
    if found.domains:
        parts.append(domains_table(found.domains))
    parts.append(_recovery(found))
    spaced: list[RenderableType] = []
    for part in parts:
        spaced += [part, Text("")]
    return Group(*spaced)


def _head(found: BundleView) -> Panel:
    run = found.run
    lines = Text()
    lines.append("status   ").append_text(status(run.shown)).append(
        f"  (stored: {run.status}, control: {run.control})\n",
    )
    lines.append(f"graph    {run.graph}\nthread   {run.thread_id}\n")
    lines.append(
        f"lease    epoch {run.epoch}, {run.phase}, worker {run.worker_id or '–'}, until {moment(run.expires_us)}\n",
    )
    lines.append(f"history  attempts: {run.attempt_no}, takeovers: {run.takeovers}, ")
    lines.append(f"events: {_counted(found, 'events')}")
    lines.append_text(_database(found.database))
    if run.error_code:
        lines.append(f"\nerror    {run.error_code}: {run.error_summary}", style="red")
    return Panel(lines, title=f"run {run.run_id}", title_align="left")


def _counted(found: BundleView, what: str) -> str:
    """Return how many of something are shown, and how many there are where these are only the newest."""
    shown = len(getattr(found, what))
    if what not in found.more:
        return f"{shown:,}"
    older = found.more[what]
    return f"the newest {shown:,}" + ("; there are older ones" if older is None else f" of {shown + older:,}")


def _database(found: DatabaseView) -> Text:
    line = Text(f"\ndatabase {found.dialect} {found.version}, {found.url}")
    if found.warning:
        line.append(f"\nwarning  {found.warning}", style="yellow")
    return line


def _attempts(found: BundleView) -> Table:
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


def _journal(found: BundleView) -> RenderableType:
    tree = Tree(Text(f"operation journal ({_counted(found, 'operations')})", style="bold"))
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


def _checkpoints(found: BundleView) -> Table:
    made = table(f"checkpoints ({_counted(found, 'checkpoints')})", "step", "source", "id", "epoch", "stored")
    for checkpoint in found.checkpoints:
        made.add_row(
            "–" if checkpoint.step is None else str(checkpoint.step),
            (checkpoint.checkpoint_ns + " " if checkpoint.checkpoint_ns else "") + (checkpoint.source or ""),
            checkpoint.checkpoint_id,
            str(checkpoint.epoch or "–"),
            moment(checkpoint.created_us),
        )
    return made


def _recovery(found: BundleView) -> Table:
    made = table("what recovery would do", "subject", "situation", "action", "outside")
    for action in found.recovery:
        made.add_row(action.subject, action.situation, action.action, action.outside)
    return made
