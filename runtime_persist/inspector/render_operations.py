"""Journalled calls in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from runtime_persist.inspector.layout import ByWidth, pairs, stacked
from runtime_persist.inspector.render import moment, status, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime_persist.inspector.operations import OperationDetails, OperationRow


_WIDE_COLUMNS = 140


def operations_table(operations: Sequence[OperationRow]) -> RenderableType:
    """Return calls as a table, newest first; two lines each where that is too wide."""
    made = table("operations", "operation", "name", "status", "try", "began", "run", "request")
    for one in operations:
        began = moment(one.created_us)
        made.add_row(one.operation_id, one.name, _status(one), str(one.try_no), began, one.run_id, one.request)
    return ByWidth(made, stacked("operations", [_stacked(one) for one in operations]), _WIDE_COLUMNS)


def _stacked(one: OperationRow) -> tuple[Text, str]:
    head = Text(f"{one.operation_id}  ").append_text(_status(one)).append(f"  {one.name}  try {one.try_no}")
    return head, f"{moment(one.created_us)}  run {one.run_id}  {one.request}"


def _status(one: OperationRow) -> Text:
    return status(one.shown if one.status == "pending" else one.status)


def operation(found: OperationDetails) -> RenderableType:
    """Return one call with its tries."""
    head = pairs(
        ("call", Text(f"{found.name}({found.request})", style="bold")),
        ("operation", found.operation_id),
        ("status", status(found.status)),
        *([("phase", found.phase)] if found.status == "pending" else []),
        *([("next try", moment(found.next_attempt_us))] if found.next_attempt_us else []),
        ("on unknown", found.on_unknown),
        ("key", found.idempotency_key),
        ("thread", f"{found.thread_id}  {found.checkpoint_ns}"),
        ("began", moment(found.created_us)),
        ("ended", moment(found.ended_us)),
        *([("error", Text(f"{found.error_type}: {found.error_text}", style="red"))] if found.error_type else []),
    )
    tries = table("tries", "try", "status", "epoch", "run", "began", "first output", "ended", "request id", "error")
    for one in found.tries:
        tries.add_row(
            str(one.try_no),
            status(one.shown),
            str(one.epoch),
            one.run_id,
            moment(one.started_us),
            f"{moment(one.first_output_us)} {one.first_output_kind}" if one.first_output_us else "",
            moment(one.ended_us),
            one.provider_request_id or "",
            one.error_type or "",
        )
    return Group(head, Text(""), tries)
