"""A lease in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.layout import pairs
from runtime_persist.inspector.render import moment, status, table
from runtime_persist.inspector.spelling import ago

if TYPE_CHECKING:
    from runtime_persist.inspector.leases import LeaseView


def lease(found: LeaseView) -> RenderableType:
    """Return who may commit for a run, and who could before."""
    verb = {"held": "runs out", "expired": "ran out", "released": "ended"}[found.state]
    rows: list[tuple[str, RenderableType]] = [
        ("run", found.run_id),
        ("thread", found.thread_id),
        ("epoch", f"{found.epoch}, {found.phase}; every older one is refused"),
        ("worker", found.worker_id or "–"),
        ("until", f"{moment(found.expires_us)} ({verb} {ago(found.expires_us, found.as_of_us)})"),
        ("control", found.control),
    ]
    if found.revocation is not None:
        rows.append(("proof", found.revocation))
    if found.domains_open:
        rows.append(("domains", f"{found.domains_open} not proved revoked"))
    made = table("attempts, newest first", "epoch", "no", "worker", "status", "claimed", "start fence", "ended")
    for one in found.epochs:
        cells = (moment(one.claimed_us), moment(one.start_requested_us), moment(one.ended_us))
        made.add_row(str(one.epoch or "–"), str(one.attempt_no), one.worker_id or "–", status(one.status), *cells)
    return Group(Text("lease ").append_text(status(found.state)), pairs(*rows), Text(""), made)
