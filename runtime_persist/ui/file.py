"""The page of a run as one file, made of a bundle: for a mail, or beside a failed build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runtime_persist.adapters.workflow import RawSerializer, encoding
from runtime_persist.errors import RuntimePersistError, ThreadNotFound
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.recovery import plan_of_bundle
from runtime_persist.inspector.thread import HISTORY
from runtime_persist.inspector.thread_records import thread_of
from runtime_persist.inspector.tickets import tickets_of
from runtime_persist.inspector.why import why_of
from runtime_persist.ui import changes
from runtime_persist.ui.page import ROWS_MAX, RunPage
from runtime_persist.ui.templating import rendered_file

if TYPE_CHECKING:
    from runtime_persist.inspector.bundles import RecoveryBundle
    from runtime_persist.inspector.thread import ThreadView
    from runtime_persist.model.payload import PayloadRef
    from runtime_persist.ui.changes import Change

FILE_ROWS_MAX: Final = 1_000
"""Operations, checkpoints and events of a file: the newest. The bundle has them all."""


def html_of(bundle: RecoveryBundle) -> str:
    """Return the page of a bundle's run: one HTML file, without scripts, that needs nothing beside it."""
    return rendered_file(page_of(bundle))


def page_of(bundle: RecoveryBundle) -> RunPage:
    """Return what the page of a bundle's run shows."""
    view = view_of(bundle)
    more = dict(view.more)
    for kind in ("operations", "checkpoints", "events"):
        left = len(getattr(view, kind)) - FILE_ROWS_MAX
        if left > 0:
            more[kind] = left
    view = view.model_copy(
        update={
            "operations": view.operations[-FILE_ROWS_MAX:],
            "checkpoints": view.checkpoints[-FILE_ROWS_MAX:],
            "events": view.events[-FILE_ROWS_MAX:],
            "more": more,
        }
    )
    run_id = bundle.manifest.run_id
    return RunPage(
        view,
        why_of(bundle),
        plan_of_bundle(bundle),
        tickets_of(bundle, run_id, FILE_ROWS_MAX, held=False),
        _thread(bundle),
        changes=_changes(bundle),
        bundle=bundle,
    )


def _thread(bundle: RecoveryBundle) -> ThreadView | None:
    """Return the thread by size, as of the run's last checkpoint (None: it stored none)."""
    ids = [row["checkpoint_id"] for row in bundle.rows["checkpoints"] if row["run_id"] == bundle.manifest.run_id]
    if not ids:
        return None
    try:
        return thread_of(bundle, bundle.manifest.thread_id, ns=None, checkpoint_id=max(ids), history=HISTORY)
    except ThreadNotFound:
        return None


def _changes(bundle: RecoveryBundle) -> dict[tuple[str, str], list[Change]]:
    """Return what the newest checkpoints changed, each beside the one before it."""
    rows = {(row["checkpoint_ns"], row["checkpoint_id"]): row for row in bundle.rows["checkpoints"]}
    newest = sorted(rows, key=lambda key: key[1])[-ROWS_MAX:]
    texts: dict[PayloadRef, str] = {}
    found: dict[tuple[str, str], list[Change]] = {}
    for key in newest:
        row = rows[key]
        parent: Any = rows.get((row["checkpoint_ns"], row["parent_id"]))
        before = {} if parent is None else encoding.refs_of(parent["body"])
        after = encoding.refs_of(row["body"])
        for ref, channel in changes.wanted(before, after).items():
            if ref not in texts:
                texts[ref] = _text(bundle, ref, channel)
        found[key] = changes.compared(before, after, texts)
    return found


def _text(bundle: RecoveryBundle, ref: PayloadRef, channel: str) -> str:
    try:
        return changes.said(bundle.value(RawSerializer(), ref, f"channel {channel!r}"))
    except RuntimePersistError as error:
        return f"({error.code}: {error.message})"
