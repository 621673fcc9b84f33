"""The rows of the kill matrix about budgets: the counters of a run are what its tickets add up to, whoever died."""

import time
from dataclasses import fields, replace
from typing import Any

import pytest

from runtime_persist.commands.begin_in_invocation import BeginInInvocation
from runtime_persist.commands.begin_operation import BeginOperation
from runtime_persist.commands.begin_with_ticket import BeginWithTicket
from runtime_persist.commands.raise_budget import RaiseBudget
from runtime_persist.commands.reserve_ticket import ReserveTicket
from runtime_persist.commands.settle_ticket import SettleTicket
from runtime_persist.engine import OwnedRun, ownership, run, settling
from runtime_persist.errors import IllegalTransition, TicketsTaken
from runtime_persist.model.budgets import Budget, Ticket
from runtime_persist.model.ids import new_id
from tests.faults import acts, scenarios
from tests.faults.control import base, goes_on
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Rows, Scenario

__all__ = ["BUDGETS", "alike", "retries_nothing"]

TICKET = Ticket("loop", tokens=10)


def own(stage: Stage) -> OwnedRun:
    command = acts.start_owned(stage)
    budget = Budget(loops=1, tokens=100, per_invocation=Budget(loops=1))
    sent = time.monotonic()
    started = acts.commit(stage, replace(command, request=replace(command.request, budget=budget)))
    return ownership.own(stage.engine, acts.SERDE, stage.thread_id, command.request.graph, started.result, sent)


def begin(stage: Stage, owned: OwnedRun) -> BeginWithTicket:
    made = acts.begin(stage, owned)
    plain = {part.name: getattr(made, part.name) for part in fields(BeginOperation)}
    return BeginWithTicket(**plain, takes=TICKET.takes(), needs=TICKET.needs())


def a_ticket(stage: Stage) -> Prepared:
    return Prepared(begin(stage, own(stage)))


def a_ticket_of_an_invocation(stage: Stage) -> Prepared:
    return Prepared(BeginInInvocation(**{**_parts(begin(stage, own(stage))), "invocation": "agent:1"}))


def of_state(*states: str) -> Any:
    def count(rows: Rows, _: Prepared) -> int:
        return sum(row["state"] in states for row in rows["tickets"])

    return count


def keeps_it_for_good(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """begin_in_invocation: an unknown try keeps its ticket of the invocation; else whoever comes next takes one."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    scenarios.old_epoch(stage, command, committed=committed)
    again = replace(command, command_id=new_id(), operation_id=new_id(), epoch=owned.lease.epoch)
    if committed:
        with pytest.raises(IllegalTransition):
            acts.commit(stage, again)
    else:
        acts.commit(stage, again)
    beyond = replace(again, command_id=new_id(), operation_id=new_id(), key=replace(again.key, ordinal="#9"))
    with pytest.raises(TicketsTaken):
        acts.commit(stage, beyond)
    acts.commit(stage, settle(stage, owned, _operation(stage)))
    acts.finish(stage, owned)


def keeps_it(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """begin_with_ticket: an unknown try keeps its ticket, which is neither taken twice nor lost; else it takes one."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    scenarios.old_epoch(stage, command, committed=committed)
    receipt = acts.commit(stage, acts.begin_again(command, owned))
    assert receipt.replayed is committed
    operation = receipt.result["operation_id"] if committed else _operation(stage)
    reserve = ReserveTicket(
        operation_id=operation, takes=TICKET.takes(), needs=TICKET.needs(), **acts.leased(stage, owned)
    )
    assert acts.commit(stage, reserve).result == {"state": "reserved"}
    assert acts.commit(stage, settle(stage, owned, operation)).result == {"state": "consumed"}
    acts.finish(stage, owned)


def _operation(stage: Stage) -> str:
    (row,) = acts.rows(stage)["operations"]
    found: str = row["operation_id"]
    return found


def settle(stage: Stage, owned: OwnedRun, operation_id: str) -> SettleTicket:
    return SettleTicket(operation_id=operation_id, took=Ticket("loop", tokens=7).takes(), **acts.leased(stage, owned))


def a_further_try(stage: Stage) -> Prepared:
    owned = own(stage)
    begun = acts.begin(stage, owned)
    acts.commit(stage, begun)
    return Prepared(
        ReserveTicket(
            operation_id=begun.operation_id,
            takes=TICKET.takes(),
            needs=TICKET.needs(),
            invocation="agent:1",
            **acts.leased(stage, owned),
        )
    )


def has_one(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """reserve_ticket: a ticket without a try is there for whoever comes next, who does not take a second one."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    scenarios.old_epoch(stage, command, committed=committed)
    acts.commit(stage, replace(command, command_id=new_id(), epoch=owned.lease.epoch))
    acts.commit(stage, settle(stage, owned, command.operation_id))
    acts.finish(stage, owned)


def a_settlement(stage: Stage) -> Prepared:
    owned = own(stage)
    begun = begin(stage, owned)
    acts.commit(stage, begun)
    return Prepared(settle(stage, owned, begun.operation_id))


def settles_once(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """settle_ticket: whoever comes next settles it, or finds it settled."""
    command: Any = prepared.command
    owned = acts.take_over(stage, command.run_id)
    scenarios.old_epoch(stage, command, committed=committed)
    acts.commit(stage, replace(command, command_id=new_id(), epoch=owned.lease.epoch))
    acts.finish(stage, owned)


def a_raise(stage: Stage) -> Prepared:
    owned = own(stage)
    run(settling.wait_for_person(stage.engine, owned, "budget", {"kind": "budget"}))
    command = RaiseBudget(
        run_id=owned.lease.run_id,
        limits=Budget(loops=2).limits(),
        question_id=owned.attempt_id,
        **base(stage),
    )
    return Prepared(command, {"run_id": owned.lease.run_id})


def a_start_that_retries(stage: Stage) -> Prepared:
    """Of a run that has consumed a ticket of an invocation, and failed."""
    owned = own(stage)
    begun = BeginInInvocation(**{**_parts(begin(stage, owned)), "invocation": "agent:1"})
    acts.commit(stage, begun)
    acts.commit(stage, settle(stage, owned, begun.operation_id))
    run(settling.fail(stage.engine, owned, "ValueError", "no luck"))
    command = acts.start_owned(stage)
    asked = replace(command.request, retry_of_run_id=owned.lease.run_id)
    return Prepared(replace(command, request=asked))


def _parts(command: BeginWithTicket) -> dict[str, Any]:
    return {part.name: getattr(command, part.name) for part in fields(BeginWithTicket)}


def goes_on_with_the_budget(stage: Stage, prepared: Prepared, committed: bool) -> None:
    run_id = scenarios.again(stage, prepared, committed).result["run_id"]
    rows = acts.check(stage)
    (new,) = (row for row in rows["runs"] if row["run_id"] == run_id)
    assert (new["loops_limit"], new["loops_consumed"], new["invocation_loops_limit"]) == (1, 1, 1)
    (carried,) = (row for row in rows["tickets"] if row["run_id"] == run_id)
    assert (carried["state"], carried["loops"], carried["invocation"]) == ("consumed", 1, "agent:1")
    acts.take_over_and_finish(stage, run_id)


RETRIES = "start_owned_run:retrying"
_CARRIES = {"read_run", "carry_tickets"}


def retries_nothing(scenario: Scenario) -> Scenario:
    """A start that retries no run says so."""
    if scenario.spec.name != "start_owned_run" or scenario.name == RETRIES:
        return scenario
    never = dict.fromkeys(_CARRIES, "it retries no run")
    return replace(scenario, never={**scenario.never, **never})


def alike(scenario: Scenario, statement: str) -> bool:
    """Whether a start that retries is killed there as any other start is."""
    return scenario.name == RETRIES and statement not in {*_CARRIES, "commit"}


_ONE_RUN = dict.fromkeys(
    ("read_attempt", "save_run", "save_attempt", "mark_tries_unknown", "lock_run"), "no open run has the thread"
)

BUDGETS = (
    Scenario(RETRIES, a_start_that_retries, goes_on_with_the_budget, scenarios.receipts, _ONE_RUN),
    Scenario("begin_with_ticket", a_ticket, keeps_it, of_state("reserved", "consumed")),
    Scenario("begin_in_invocation", a_ticket_of_an_invocation, keeps_it_for_good, of_state("reserved", "consumed")),
    Scenario("reserve_ticket", a_further_try, has_one, of_state("reserved", "consumed")),
    Scenario("settle_ticket", a_settlement, settles_once, of_state("consumed")),
    Scenario("raise_budget", a_raise, goes_on, scenarios.receipts),
)
