"""The kill matrix as data: for each command, the situations that together reach all of its cuts.

A scenario says how the thread is prepared, which command the victim sends, and what another process does after its
death. ``never`` names the statements that this situation does not reach, and why; a test holds it to that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from runtime_persist.commands import COMMANDS, Spec
from runtime_persist.commands.parts.spec import Command, HotCommand, ThreadCommand
from runtime_persist.coordinator import CommitReceipt
from runtime_persist.errors import LeaseLost
from runtime_persist.testing.faults import Rows
from tests.faults import acts
from tests.faults.kit import Stage


@dataclass(frozen=True)
class Prepared:
    """The command of the victim, and what the recovery needs to know."""

    command: Command
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """One situation of one command.

    Attributes:
        name: unique; begins with the command's name.
        prepare: brings the thread there and makes the command.
        recover: (stage, prepared, whether the command is committed): the second process finishes.
        count: how often the command's effect is in the rows: 0 or 1, never anything between.
        never: statement -> why this situation does not reach it.

    """

    name: str
    prepare: Callable[[Stage], Prepared]
    recover: Callable[[Stage, Prepared, bool], None]
    count: Callable[[Rows, Prepared], int]
    never: Mapping[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> Spec:
        name = self.name.partition(":")[0]
        return next(spec for spec in COMMANDS.values() if spec.name == name)

    @property
    def hot(self) -> bool:
        return isinstance(self.spec, HotCommand)

    def lock(self, prepared: Prepared) -> tuple[str, str, str]:
        """The row that a hot command waits for: table, column, value."""
        command = prepared.command
        if isinstance(command, ThreadCommand):
            return "rp_threads", "thread_id", command.thread_id
        return "rp_runs", "run_id", command.run_id  # type: ignore[attr-defined]


# --- what is counted ------------------------------------------------------------------------------------------------


def receipts(rows: Rows, prepared: Prepared) -> int:
    return sum(row["command_id"] == prepared.command.command_id for row in rows["receipts"])


def checkpoints(rows: Rows, prepared: Prepared) -> int:
    row: Any = prepared.command
    found = sum(stored["checkpoint_id"] == row.row.checkpoint_id for stored in rows["checkpoints"])
    heads = [head["checkpoint_id"] for head in rows["heads"]]
    assert (heads == [row.row.checkpoint_id]) is bool(found), "checkpoint and head are one write"
    return found


def writes(rows: Rows, prepared: Prepared) -> int:
    command: Any = prepared.command
    indices = sorted(row["idx"] for row in rows["writes"])
    if not indices:
        return 0
    assert indices == sorted(write.idx for write in command.given.writes), "the writes of a task are one write"
    return 1


def begun(rows: Rows, _: Prepared) -> int:
    return len(rows["operations"])


def completed(rows: Rows, _: Prepared) -> int:
    return sum(row["status"] == "succeeded" for row in rows["operations"])


def second_try(rows: Rows, _: Prepared) -> int:
    return sum(row["try_no"] == 2 for row in rows["operation_tries"])


# --- hot commands under a lease: the second process takes the run over and goes on under the next epoch ---------------


def old_epoch(stage: Stage, command: Command, *, committed: bool) -> None:
    """Send the victim's own command as a zombie would: its receipt if it had committed, else a refusal."""
    if committed:
        assert acts.commit(stage, command).replayed
    else:
        with pytest.raises(LeaseLost):
            acts.commit(stage, command)


def same_checkpoint(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The next holder sends the same checkpoint: it is found or written once."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    old_epoch(stage, command, committed=committed)
    again = replace(command, epoch=owned.lease.epoch)
    assert acts.commit(stage, again).replayed is committed
    assert acts.commit(stage, again).replayed
    acts.finish(stage, owned)


def same_writes(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """The next holder sends the same task writes: the first regular ones stay, the newest special ones count."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    old_epoch(stage, command, committed=committed)
    acts.commit(stage, replace(command, epoch=owned.lease.epoch))
    epochs = {row["idx"] >= 0: row["epoch"] for row in acts.rows(stage)["writes"]}
    assert epochs == {True: command.epoch if committed else owned.lease.epoch, False: owned.lease.epoch}
    acts.finish(stage, owned)


def same_operation(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """begin_operation: begun before, its try is unknown and nobody calls again blindly; else it begins fresh."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    old_epoch(stage, command, committed=committed)
    again = acts.begin_again(command, owned)
    receipt = acts.commit(stage, again)
    assert receipt.replayed is committed
    if committed:
        assert receipt.result["operation_id"] == command.operation_id
        assert (receipt.result["status"], receipt.result["try_status"]) == ("pending", "unknown")
    assert acts.commit(stage, again).replayed
    acts.finish(stage, owned)


def same_outcome(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """complete_operation: the stored result is found, or the try is unknown and a second one settles it."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    old_epoch(stage, command, committed=committed)
    found = acts.commit(stage, acts.begin_again(prepared.facts["begin"], owned))
    assert found.replayed
    if committed:
        assert (found.result["status"], found.result["result"]) == ("succeeded", command.result)
        assert acts.commit(stage, replace(command, epoch=owned.lease.epoch)).replayed
    else:
        assert (found.result["status"], found.result["try_status"]) == ("pending", "unknown")
        acts.commit(stage, acts.start_try(stage, owned, command.operation_id, 2))
        acts.commit(stage, acts.complete(stage, owned, command.operation_id, 2))
    acts.finish(stage, owned)


def same_try(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """start_attempt: a try that was started is unknown to the next holder, who starts the one behind it."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    old_epoch(stage, command, committed=committed)
    (row,) = acts.rows(stage)["operations"]
    assert row["try_no"] == (2 if committed else 1)
    number = row["try_no"] + 1
    acts.commit(stage, acts.start_try(stage, owned, command.operation_id, number))
    acts.commit(stage, acts.complete(stage, owned, command.operation_id, number))
    acts.finish(stage, owned)


def same_put(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """Writes without a lease: whoever repeats the call finds them or writes them once."""
    receipt = acts.commit(stage, prepared.command)
    if hasattr(prepared.command, "row"):
        assert receipt.replayed is committed
        assert acts.commit(stage, prepared.command).replayed


# --- cold commands: sent again it answers with its receipt; then somebody else takes over and finishes --------------


def again(stage: Stage, prepared: Prepared, committed: bool) -> CommitReceipt:
    receipt = acts.commit(stage, prepared.command)
    assert receipt.replayed is committed
    repeated = acts.commit(stage, prepared.command)
    assert repeated.replayed
    assert repeated.result == receipt.result
    acts.check(stage)
    return receipt


def claimed_again(stage: Stage, prepared: Prepared, committed: bool) -> None:
    receipt = again(stage, prepared, committed)
    assert receipt.result["epoch"] == prepared.facts["epoch"] + 1
    assert receipt.result["takeover"] is prepared.facts["takeover"]
    acts.take_over_and_finish(stage, prepared.facts["run_id"])


def step_again(stage: Stage, prepared: Prepared, committed: bool) -> None:
    again(stage, prepared, committed)
    acts.take_over_and_finish(stage, prepared.facts["run_id"])


def ended_again(stage: Stage, prepared: Prepared, committed: bool) -> None:
    assert again(stage, prepared, committed).result == {"status": prepared.facts["status"]}
    found = acts.check(stage)
    (run,) = found["runs"]
    assert run["status"] == prepared.facts["status"]
    assert [row["owner_run_id"] for row in found["threads"]] == [None]


def started_again(stage: Stage, prepared: Prepared, committed: bool) -> None:
    run_id = again(stage, prepared, committed).result["run_id"]
    acts.take_over_and_finish(stage, run_id)


def queued_again(stage: Stage, prepared: Prepared, committed: bool) -> None:
    run_id = again(stage, prepared, committed).result["run_id"]
    for first in prepared.facts.get("behind", ()):
        acts.take_over_and_finish(stage, first)
    owned = acts.claim(stage, run_id)
    acts.activate(owned)
    acts.finish(stage, owned)
