"""The rows of the kill matrix about tries of an operation that end while the operation goes on."""

from dataclasses import replace
from typing import Any

from runtime_persist.commands.control_finalize_operation import ControlFinalizeOperation
from runtime_persist.commands.end_attempt import EndAttempt
from runtime_persist.commands.save_attempt_raw import SaveAttemptRaw
from runtime_persist.engine import payloads
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.states import TryStatus
from tests.faults import acts, scenarios
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Rows, Scenario

__all__ = ["JOURNAL"]


def a_failed_try(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    said = {"status": TryStatus.FAILED, "error_type": "TimeoutError", "error_text": "down", "retry_in_us": 0}
    named = {"operation_id": begin.operation_id, "name": "pay", "try_no": 1}
    return Prepared(EndAttempt(**named, **said, **acts.leased(stage, owned)), {"begin": begin})


def failed(rows: Rows, _: Prepared) -> int:
    ended = [row["status"] == "failed" for row in rows["operation_tries"]]
    if len(ended) == 1:
        due = [row["next_attempt_us"] is not None for row in rows["operations"]]
        assert due == ended, "the try's end and the time of the next one are one write"
    return sum(ended)


def next_try(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """end_attempt: the count goes on where it was, whether the failure was stored or the try is unknown."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    scenarios.old_epoch(stage, command, committed=committed)
    found = acts.commit(stage, acts.begin_again(prepared.facts["begin"], owned))
    assert (found.result["try_no"], found.result["try_status"]) == (1, "failed" if committed else "unknown")
    number = 2
    acts.commit(stage, acts.start_try(stage, owned, command.operation_id, number))
    if not committed:
        acts.commit(stage, replace(command, try_no=number, **acts.leased(stage, owned)))
        number = 3
        acts.commit(stage, acts.start_try(stage, owned, command.operation_id, number))
    acts.commit(stage, acts.complete(stage, owned, command.operation_id, number))
    acts.finish(stage, owned)


def a_raw_result(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "raw"))
    said = {"raw": data, "outcome": fingerprint(data), "owner": stage.engine.owner, "blobs": blobs}
    named = {"operation_id": begin.operation_id, "name": "pay", "try_no": 1}
    return Prepared(SaveAttemptRaw(**named, **said, **acts.leased(stage, owned)), {"begin": begin})


def raw_saved(rows: Rows, _: Prepared) -> int:
    return sum(row["raw"] is not None for row in rows["operations"])


def same_raw(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """save_attempt_raw: what is stored is accepted without a call; else the try is unknown."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    scenarios.old_epoch(stage, command, committed=committed)
    found = acts.commit(stage, acts.begin_again(prepared.facts["begin"], owned))
    number = 1
    if committed:
        assert (found.result["phase"], found.result["try_status"]) == ("raw_saved", "succeeded")
        assert acts.commit(stage, replace(command, epoch=owned.lease.epoch)).replayed
    else:
        assert (found.result["phase"], found.result["try_status"]) == ("executing", "unknown")
        number = 2
        acts.commit(stage, acts.start_try(stage, owned, command.operation_id, number))
        acts.commit(stage, replace(command, try_no=number, **acts.leased(stage, owned)))
    acts.commit(stage, acts.complete(stage, owned, command.operation_id, number))
    acts.finish(stage, owned)


def a_leftover(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    acts.finish(stage, owned)
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "what happened"))
    command = ControlFinalizeOperation(
        space=stage.engine.space,
        command_id=new_id(),
        run_id=owned.lease.run_id,
        operation_id=begin.operation_id,
        happened=True,
        result=data,
        outcome=fingerprint(data),
        owner=stage.engine.owner,
        blobs=blobs,
    )
    return Prepared(command)


def is_settled(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """control_finalize_operation: sent again it answers with its receipt; the run stays as it ended."""
    scenarios.again(stage, prepared, committed)
    found = acts.check(stage)
    assert [row["status"] for row in found["operations"]] == ["succeeded"]
    assert [row["status"] for row in found["runs"]] == ["succeeded"]


JOURNAL = (
    Scenario("end_attempt", a_failed_try, next_try, failed),
    Scenario("control_finalize_operation", a_leftover, is_settled, scenarios.receipts),
    Scenario("save_attempt_raw", a_raw_result, same_raw, raw_saved),
)
