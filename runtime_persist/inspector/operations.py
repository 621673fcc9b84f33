"""The journal for people: which calls were made, and what is known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from runtime_persist.errors import InvalidInput, OperationNotFound
from runtime_persist.inspector.bundle import OperationView, TryView
from runtime_persist.queries import operation_list as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.engine import Engine, Flow
    from runtime_persist.plan import Row


class OperationRow(BaseModel):
    """One call, as a list shows it. Times are microseconds since 1970 by the database clock.

    Attributes:
        status: of the call: ``pending``, ``succeeded``, ``failed``.
        shown: what is known of its last try: ``unknown`` when nothing proves what became of it.
        run_id: the run that made the last try.
        request: short text of the arguments.
        on_unknown: what happens when nothing proves what became of it.

    """

    model_config = ConfigDict(frozen=True)

    operation_id: str
    name: str
    status: str
    shown: str
    try_no: int
    run_id: str
    thread_id: str
    request: str
    on_unknown: str
    error_type: str | None
    created_us: int


class OperationDetails(OperationView):
    """One call with all its tries.

    Attributes:
        thread_id: whose journal it is in.
        created_us: when it was begun.
        ended_us: when its outcome was committed (None: it has none).
        error_text: what the last failure said.

    """

    thread_id: str
    created_us: int
    ended_us: int | None


def load_operations(
    engine: Engine, run_id: str | None, limit: int, *, unknown: bool, before: str | None = None
) -> Flow[list[OperationRow]]:
    """Read the newest calls, of one run or of all; ``before``: only those with a smaller id (raises InvalidInput)."""
    if limit < 0:
        msg = f"limit must not be negative, got {limit}"
        raise InvalidInput(msg, limit=limit)
    rows: Sequence[Row] = yield engine.coordinator.read(
        "list_operations", lambda: queries.listing(engine.space, run_id, limit, unknown=unknown, before=before)
    )
    return [_row(row) for row in rows]


def _row(row: Mapping[str, Any]) -> OperationRow:
    return OperationRow.model_validate({**row, "shown": row["try_shown"], "run_id": row["try_run_id"]})


def load_operation(engine: Engine, operation_id: str) -> Flow[OperationDetails]:
    """Read one call (raises OperationNotFound)."""
    found: tuple[Row, Sequence[Row]] | None = yield engine.coordinator.read(
        "read_operation_with_tries", lambda: queries.with_tries(engine.space, operation_id), snapshot=True
    )
    if found is None:
        msg = f"there is no operation {operation_id!r} in space {engine.space!r}"
        raise OperationNotFound(msg, operation_id=operation_id)
    row, tries = found
    return OperationDetails.model_validate({**row, "tries": [TryView.model_validate(dict(one)) for one in tries]})
