"""Rows of a bundle with other references to their values, and the fingerprints that they have then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime_persist.adapters.workflow import encoding
from runtime_persist.commands.parts.write_rows import TaskWrite
from runtime_persist.inspector.bundles import content
from runtime_persist.model.keys import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runtime_persist.model.payload import PayloadRef
    from runtime_persist.plan import Row


def rewritten(
    rows: Mapping[str, Sequence[Row]], change: Callable[[PayloadRef, str], PayloadRef]
) -> dict[str, list[dict[str, Any]]]:
    """Return copies of rows whose references are what ``change`` makes of them (it is told where each stands)."""
    made: dict[str, list[dict[str, Any]]] = {name: [dict(row) for row in part] for name, part in rows.items()}
    bodies: dict[int, dict[str, PayloadRef]] = {}
    for value in content.values(rows):
        ref = change(value.ref, value.said())
        if value.channel is not None:
            bodies.setdefault(value.row, {})[value.channel] = ref
        elif ref is not value.ref:
            made[value.part][value.row][value.column] = ref.encoded()
    for number, refs in bodies.items():
        row = made["checkpoints"][number]
        before = encoding.refs_of(row["body"])
        if any(ref is not before[channel] for channel, ref in refs.items()):
            row["body"] = encoding.with_refs(row["body"], {channel: refs[channel] for channel in before})
    _sign(made)
    return made


def _sign(rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Give rows the fingerprints of what they hold now."""
    for row in rows["checkpoints"]:
        row["fingerprint"] = fingerprint((row["parent_id"] or "").encode(), row["body"], row["metadata"])
    for row in rows["writes"]:
        row["fingerprint"] = TaskWrite(idx=row["idx"], channel=row["channel"], value=row["value"]).fingerprint()
