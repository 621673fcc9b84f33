"""The rows of the kill matrix for what people and savers do beside a run: stop, answer, settle, delete, register."""

from dataclasses import replace
from typing import Any

from runtime_persist.commands.answer_question import AnswerQuestion
from runtime_persist.commands.collect_content import CollectContent
from runtime_persist.commands.copy_thread import CopyThread
from runtime_persist.commands.create_space import CreateSpace
from runtime_persist.commands.delete_runs_checkpoints import DeleteRunsCheckpoints
from runtime_persist.commands.delete_thread import DeleteThread
from runtime_persist.commands.expire_delete_marks import ExpireDeleteMarks
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.import_thread import ImportThread
from runtime_persist.commands.move_to_front import MoveToFront
from runtime_persist.commands.parts.checkpoint_rows import CheckpointRow
from runtime_persist.commands.prune_thread import PruneThread, Snapshot
from runtime_persist.commands.register_graph import RegisterGraph
from runtime_persist.commands.replace_thread_checkpoint import ReplaceThreadCheckpoint
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.commands.resolve_unknown import ResolveUnknown
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.engine import payloads, run, settling
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.schema import metadata
from runtime_persist.testing.faults import Rows
from tests.faults import acts, scenarios
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Scenario

NO_OPEN_ATTEMPT = "a run that may be ended at once has no open attempt"


def stored(stage: Stage, what: str) -> dict[str, Any]:
    """A large value of a control command."""
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, what))
    return {"data": data, "owner": stage.engine.owner, "blobs": blobs}


def base(stage: Stage) -> dict[str, Any]:
    return {"space": stage.engine.space, "command_id": new_id()}


def waiting(stage: Stage) -> str:
    owned = acts.own(stage)
    run(settling.wait_for_person(stage.engine, owned, "interrupt", "why"))
    return owned.lease.run_id


# --- before the kill ------------------------------------------------------------------------------------------------


def an_answer(stage: Stage) -> Prepared:
    run_id = waiting(stage)
    value = stored(stage, "answer")
    command = AnswerQuestion(run_id=run_id, answer=value.pop("data"), said=b"because", **value, **base(stage))
    return Prepared(command, {"run_id": run_id})


def a_question(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    value = stored(stage, "question")
    command = YieldAttempt(reason="interrupt", question=value.pop("data"), **value, **acts.leased(stage, owned))
    return Prepared(command, {"run_id": owned.lease.run_id})


def a_stop(stage: Stage) -> Prepared:
    run_id = acts.own(stage).lease.run_id
    return Prepared(RequestStop(run_id=run_id, **base(stage)), {"run_id": run_id})


def a_move(stage: Stage) -> Prepared:
    run_id = acts.queue(stage)
    return Prepared(MoveToFront(run_id=run_id, **base(stage)), {"run_id": run_id})


def a_stop_before_the_start(stage: Stage) -> Prepared:
    run_id = acts.claim(stage, acts.queue(stage)).lease.run_id
    facts = {"status": "cancelled", "result": {"status": "cancelled", "control": "stopping"}}
    return Prepared(RequestStop(run_id=run_id, **base(stage)), facts)


def a_stop_while_waiting(stage: Stage) -> Prepared:
    run_id = waiting(stage)
    facts = {"status": "cancelled", "result": {"status": "cancelled", "control": "stopping"}}
    return Prepared(RequestStop(run_id=run_id, **base(stage)), facts)


def a_resolution(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    owned = acts.take_over(stage, owned.lease.run_id)
    run(settling.wait_for_person(stage.engine, owned, "ask", "did it happen?"))
    value = stored(stage, "what happened")
    command = ResolveUnknown(
        run_id=owned.lease.run_id,
        operation_id=begin.operation_id,
        happened=True,
        result=value.pop("data"),
        outcome=fingerprint(b"it did"),
        **value,
        **base(stage),
    )
    return Prepared(command, {"run_id": owned.lease.run_id})


def a_deletion(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    acts.commit(stage, acts.checkpoint(stage, owned, None))
    acts.commit(stage, acts.begin(stage, owned))
    stage.expire(owned.lease.run_id)
    return Prepared(DeleteThread(**acts.thread(stage)))


def a_replacement(stage: Stage) -> Prepared:
    first = acts.put(stage, None)
    acts.commit(stage, first)
    other = acts.checkpoint_row(stage, None, "other state")
    row = replace(other, checkpoint_id=first.row.checkpoint_id)
    return Prepared(ReplaceThreadCheckpoint(row=row, **acts.thread(stage)))


def an_old_mark(stage: Stage) -> Prepared:
    """Of a thread that was deleted; no mark is kept at all."""
    acts.commit(stage, a_deletion(stage).command)
    return Prepared(ExpireDeleteMarks(kept_us=0, rows_max=1_000, **base(stage)))


def unused_content(stage: Stage) -> Prepared:
    """Of a checkpoint that was replaced by another one; what is marked is removed at once, and one piece is in use."""
    first = acts.put(stage, None)
    acts.commit(stage, first)
    row = replace(acts.checkpoint_row(stage, None, "other state"), checkpoint_id=first.row.checkpoint_id)
    acts.commit(stage, ReplaceThreadCheckpoint(row=row, **acts.thread(stage)))
    used = {blob.address for blob in row.blobs}
    unused = tuple(sorted({blob.address for blob in first.row.blobs} - used))
    found = {"owner": stage.engine.owner, "seen_us": 2**62, "unused": unused}
    acts.commit(stage, CollectContent(window_us=2**61, used=tuple(used), **found, **base(stage)))
    command = CollectContent(window_us=0, used=tuple(used), **found, **base(stage))
    return Prepared(command, {"unused": unused, "used": used})


def a_copy(stage: Stage) -> Prepared:
    """Of a thread whose run died in the middle of an operation."""
    source = replace(stage, thread_id=f"{stage.thread_id} source")
    owned = acts.own(source)
    acts.commit(source, acts.checkpoint(source, owned, None))
    acts.commit(source, acts.task_writes(source, owned))
    acts.commit(source, acts.begin(source, owned))
    stage.expire(owned.lease.run_id)
    named = acts.thread(source)
    command = CopyThread(source_id=source.thread_id, source_hash=named["thread_hash"], **acts.thread(stage))
    return Prepared(command)


def three_checkpoints(stage: Stage) -> tuple[CheckpointRow, ...]:
    """Of a run whose lease ran out."""
    owned = acts.own(stage)
    found: list[CheckpointRow] = []
    for _ in range(3):
        command = acts.checkpoint(stage, owned, found[-1].checkpoint_id if found else None)
        acts.commit(stage, command)
        found.append(command.row)
    stage.expire(owned.lease.run_id)
    return tuple(found)


def a_pruning(stage: Stage) -> Prepared:
    """Of a thread whose head is rewritten in the same transaction."""
    rows = three_checkpoints(stage)
    gone, hidden, kept = (row.checkpoint_id for row in rows)
    other = acts.checkpoint_row(stage, hidden, "the same state, with all its values")
    command = PruneThread(
        heads={"": kept},
        snapshots=(Snapshot(row=replace(other, checkpoint_id=kept), read=rows[-1].fingerprint),),
        delete={"": (gone,)},
        hide={"": (hidden,)},
        roots={"": (kept,)},
        empty=("a namespace",),
        **acts.thread(stage),
    )
    return Prepared(command, {"left": {hidden: (1, 0), kept: (0, 1)}})


def a_deletion_by_run(stage: Stage) -> Prepared:
    three_checkpoints(stage)
    return Prepared(DeleteRunsCheckpoints(run_refs=(acts.RUN_REF,), **acts.thread(stage)), {"left": {}})


def an_import(stage: Stage) -> Prepared:
    """To a thread whose run died before it stored anything."""
    stage.expire(acts.own(stage).lease.run_id)
    row = acts.checkpoint_row(stage, None, "state")
    given = replace(acts.given(stage), checkpoint_id=row.checkpoint_id)
    heads = {"": (None, row.checkpoint_id)}
    return Prepared(ImportThread(rows=(row,), writes=(given,), heads=heads, **acts.thread(stage)))


def a_graph(stage: Stage) -> Prepared:
    return Prepared(RegisterGraph(graph=stage.thread_id, **base(stage)))


def a_space(stage: Stage) -> Prepared:
    return Prepared(CreateSpace(secret=b"of somebody who came second", **base(stage)))


# --- after it -------------------------------------------------------------------------------------------------------


def replaced(rows: Rows, prepared: Prepared) -> int:
    command: Any = prepared.command
    return sum(row["fingerprint"] == command.row.fingerprint for row in rows["checkpoints"])


def goes_on(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The run is queued: a worker claims it and ends it."""
    scenarios.again(stage, prepared, committed)
    owned = acts.claim(stage, prepared.facts["run_id"])
    acts.activate(owned)
    acts.finish(stage, owned)


def is_answered(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The run waits: a person answers, a worker goes on."""
    scenarios.again(stage, prepared, committed)
    data, _ = payloads.encode(stage.engine, acts.SERDE, "because")
    acts.commit(stage, AnswerQuestion(run_id=prepared.facts["run_id"], answer=data, said=b"because", **base(stage)))
    goes_on(stage, prepared, committed=True)


def is_stopped(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """Whoever takes the run over cannot start anything; it ends cancelled although its code returned."""
    scenarios.again(stage, prepared, committed)
    run_id = prepared.facts["run_id"]
    stage.expire(run_id)
    owned = acts.claim(stage, run_id)
    data, blobs = payloads.encode(stage.engine, acts.SERDE, "done")
    end = FinalizeRun.succeeded(
        result=data,
        owner=stage.engine.owner,
        blobs=blobs,
        run_id=run_id,
        epoch=owned.lease.epoch,
        **acts.thread(stage),
    )
    assert acts.commit(stage, end).result == {"status": "cancelled"}


def has_ended(stage: Stage, prepared: Prepared, committed: bool) -> None:
    assert scenarios.again(stage, prepared, committed).result == prepared.facts["result"]
    (row,) = acts.check(stage)["runs"]
    assert row["status"] == prepared.facts["status"]


def is_deleted(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    rows = acts.check(stage)
    # Rows of the space may be of cases before: its content, graphs, instances, and receipts without a run.
    of_threads = [name for name in rows if {"thread_id", "run_id"} & set(metadata.tables[f"rp_{name}"].c.keys())]
    left = {name: len(rows[name]) for name in of_threads if name != "receipts" and rows[name]}
    assert left == {}, left
    assert [row for row in rows["receipts"] if row["run_id"] is not None] == []


def is_forgotten(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    assert acts.check(stage)["threads"] == []


def is_collected(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """Nothing that is referred to is missing (an invariant), and sent again under another id it finds nothing to do."""
    scenarios.again(stage, prepared, committed)
    command: Any = prepared.command
    there = {bytes(row["address"]) for row in acts.check(stage)["blobs"]}
    assert not there & set(prepared.facts["unused"])
    assert there >= prepared.facts["used"]
    assert acts.commit(stage, replace(command, **base(stage))).result["removed"] == 0


def is_copied(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The copy's operation is unknown: an effect of the source never fires again there."""
    scenarios.again(stage, prepared, committed)
    rows = acts.check(stage)
    assert (len(rows["checkpoints"]), len(rows["heads"]), len(rows["writes"])) == (1, 1, 3)
    assert [(row["status"], row["try_no"]) for row in rows["operations"]] == [("pending", 1)]
    assert [row["status"] for row in rows["operation_tries"]] == ["unknown"]


def is_imported(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """Sent again under another id it finds everything there."""
    scenarios.again(stage, prepared, committed)
    command: Any = prepared.command
    assert acts.commit(stage, replace(command, **base(stage))).result == {"stored": 0}
    rows = acts.check(stage)
    assert (len(rows["checkpoints"]), len(rows["heads"]), len(rows["writes"])) == (1, 1, 3)


def is_pruned(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    rows = acts.check(stage)
    left = {row["checkpoint_id"]: (row["hidden"], row["orphan"]) for row in rows["checkpoints"]}
    assert left == prepared.facts["left"]


def is_replaced(stage: Stage, prepared: Prepared, _committed: bool) -> None:
    """Replacing it by the same content again changes nothing."""
    acts.commit(stage, prepared.command)


def is_the_same(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)


CONTROL = (
    Scenario("answer_question", an_answer, goes_on, scenarios.receipts),
    Scenario("yield_attempt", a_question, is_answered, scenarios.receipts),
    Scenario("request_stop:running", a_stop, is_stopped, scenarios.receipts, {"save_attempt": NO_OPEN_ATTEMPT}),
    Scenario("request_stop:claimed", a_stop_before_the_start, has_ended, scenarios.receipts),
    Scenario(
        "request_stop:waiting",
        a_stop_while_waiting,
        has_ended,
        scenarios.receipts,
        {"save_attempt": NO_OPEN_ATTEMPT},
    ),
    Scenario("move_to_front", a_move, goes_on, scenarios.receipts),
    Scenario("resolve_unknown", a_resolution, goes_on, scenarios.receipts),
    Scenario("delete_thread", a_deletion, is_deleted, scenarios.receipts),
    Scenario("expire_delete_marks", an_old_mark, is_forgotten, scenarios.receipts),
    Scenario("collect_content", unused_content, is_collected, scenarios.receipts),
    Scenario("copy_thread", a_copy, is_copied, scenarios.receipts),
    Scenario("import_thread", an_import, is_imported, scenarios.receipts),
    Scenario("prune_thread", a_pruning, is_pruned, scenarios.receipts),
    Scenario("delete_runs_checkpoints", a_deletion_by_run, is_pruned, scenarios.receipts),
    Scenario("replace_thread_checkpoint", a_replacement, is_replaced, replaced),
    Scenario("register_graph", a_graph, is_the_same, scenarios.receipts),
    Scenario("create_space", a_space, is_the_same, scenarios.receipts),
)
