"""What a person says became of an operation, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import null, update
from sqlalchemy.sql.expression import case

from runtime_persist.commands.parts import tries
from runtime_persist.dialects.sql import bind, constant, now_us, number
from runtime_persist.model.states import OperationPhase, OperationStatus, TryStatus
from runtime_persist.plan import Call, Query
from runtime_persist.schema import operation_tries, operations

if TYPE_CHECKING:
    from runtime_persist.plan import Row

SETTLE = Query(
    "settle_operation",
    update(operations)
    .values(
        status=bind(operations.c.status),
        phase=bind(operations.c.phase),
        raw=bind(operations.c.raw),
        raw_fingerprint=bind(operations.c.raw_fingerprint),
        result=bind(operations.c.result),
        result_fingerprint=bind(operations.c.result_fingerprint),
        next_attempt_us=null(),
        error_type=bind(operations.c.error_type),
        error_text=bind(operations.c.error_text),
        ended_us=case((number("ends") == constant(1), now_us()), else_=null()),
    )
    .where(*tries.is_operation()),
)
SETTLE_TRY = Query(
    "settle_try",
    update(operation_tries).values(status=bind(operation_tries.c.status), ended_us=now_us()).where(*tries.is_try()),
)


def status_of(row: Row, *, happened: bool) -> OperationStatus:
    """Return what an operation (its row) is once it is said whether it happened."""
    if happened and row["hooked"]:
        return OperationStatus.PENDING
    return OperationStatus.SUCCEEDED if happened else OperationStatus.FAILED


def settled(row: Row, *, happened: bool, result: bytes | None, outcome: bytes) -> list[Call]:
    """Return the statements after which an operation (its row) happened with ``result``, or did not happen.

    Of one with response hooks the result is its raw answer: they are asked about it when it is called again.
    """
    status = status_of(row, happened=happened)
    answered = status is OperationStatus.PENDING
    key = {"space": row["space"], "operation_id": row["operation_id"]}
    tried = TryStatus.SUCCEEDED if happened else TryStatus.FAILED
    said = {
        "status": status.value,
        "phase": (OperationPhase.RAW_SAVED if answered else OperationPhase.COMPLETED).value,
        "ends": int(not answered),
        "raw": result if answered else None,
        "raw_fingerprint": outcome if answered else None,
        "result": None if answered else result,
        "result_fingerprint": outcome if happened and not answered else None,
        "error_type": None if happened else "DidNotHappen",
        "error_text": None if happened else "a person stated that it did not happen",
    }
    return [Call(SETTLE, key | said), Call(SETTLE_TRY, key | {"status": tried.value, "try_no": row["try_no"]})]
