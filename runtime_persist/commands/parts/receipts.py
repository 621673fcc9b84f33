"""Receipts of cold commands: the first row a transaction writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ormsgpack
from sqlalchemy import select

from runtime_persist.commands.parts.spec import Command, Receipt
from runtime_persist.dialects.sql import bind, insert
from runtime_persist.plan import Call, Plan, Query, RowName, one_or_none
from runtime_persist.schema import receipts

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE_RECEIPT = Query(
    "write_receipt",
    insert(receipts)
    .values(**{column.name: bind(column) for column in receipts.c})
    .on_conflict_do_nothing()
    .returning(receipts.c.command_id),
    row=RowName(receipts.name, ("command_id",)),
)
READ_RECEIPT = Query(
    "read_receipt",
    select(receipts.c.fingerprint, receipts.c.result).where(
        receipts.c.space == bind(receipts.c.space),
        receipts.c.command_id == bind(receipts.c.command_id),
    ),
)


def write(command: Command, kind: str, fingerprint: bytes, result: Mapping[str, Any], now: int) -> Call:
    """Return the statement that writes a receipt; it gives no row when the command was committed before."""
    return Call(
        WRITE_RECEIPT,
        {
            "space": command.space,
            "command_id": command.command_id,
            "kind": kind,
            # The run it names or made: the receipt goes when the run's thread is deleted.
            "run_id": getattr(command, "run_id", None) or result.get("run_id"),
            "epoch": getattr(command, "epoch", None),
            "fingerprint": fingerprint,
            "result": ormsgpack.packb(dict(result)),
            "committed_us": now,
        },
    )


def find(command: Command) -> Plan[Receipt | None]:
    """Look a receipt up, in a statement of its own."""
    row = yield from one_or_none(READ_RECEIPT, space=command.space, command_id=command.command_id)
    if row is None:
        return None
    return Receipt(row["fingerprint"], ormsgpack.unpackb(row["result"]))
