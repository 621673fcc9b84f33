"""What the processes of the tests of budgets run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist import Runtime, operation
from runtime_persist.commands.begin_operation import BeginOperation
from runtime_persist.engine import OwnedRun, run
from runtime_persist.errors import RuntimePersistError
from runtime_persist.journal import tickets
from runtime_persist.model.budgets import Ticket
from runtime_persist.model.ids import new_id
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.lease import ExecutionLease
from runtime_persist.queries.operations import OperationKey
from runtime_persist.worker import Worker
from tests.soak.programs import Outside
from tests.support.graphs import chain

if TYPE_CHECKING:
    from runtime_persist.engine.notifications import Notifications, Watch
    from tests.support.processes import Word


class Telling:
    """Notifications that say it when somebody begins to wait for one."""

    def __init__(self, word: Word, notifications: Notifications) -> None:
        self._word, self._notifications = word, notifications

    def watch(self, *topics: str) -> Watch:
        made = self._notifications.watch(*topics)
        waits, said = made.next, []

        def following(seconds: float) -> Any:
            if not said:
                said.append(True)
                self._word.say("waits")
            return waits(seconds)

        made.next = following  # type: ignore[method-assign]
        return made


def takes_the_last(word: Word, url: str, lease: dict[str, Any], ordinal: str, within: bool) -> str:
    """At the word, begin an operation under a run's lease with a ticket; settle it as the next word says.

    ``within``: it is called in an invocation, whose calls are limited.
    """
    with Runtime.open(url) as runtime:
        engine = runtime.engine
        owned = OwnedRun(
            engine.coordinator,
            ExecutionLease(**lease),
            graph="g",
            serde=JsonPlusSerializer(),
            content=engine.content,
            ttl=engine.lease_ttl,
            notifications=Telling(word, engine.notifications),  # type: ignore[arg-type]
        )
        owned.limits_invocations = within
        checkpoint_ns = "agent:1|n:t" if within else "n:t"
        word.say("ready")
        word.wait()
        command = BeginOperation(
            space=engine.space,
            command_id=new_id(),
            run_id=lease["run_id"],
            epoch=lease["epoch"],
            key=OperationKey(thread_id=lease["thread_id"], checkpoint_ns=checkpoint_ns, name="model", ordinal=ordinal),
            operation_id=new_id(),
            request_fingerprint=fingerprint(ordinal.encode()),
            request=ordinal,
            idempotency_key=ordinal,
            on_unknown="retry",
            node_attempt=1,
        )
        try:
            run(tickets.begin(owned, command, Ticket("loop")))
        except RuntimePersistError as error:
            return error.code
        word.say("has it")
        if word.wait() == "consume":
            run(tickets.consume(owned, command.operation_id, Ticket("loop"), None))
        else:
            run(tickets.release(owned, command.operation_id))
        return "had it"


def budgeted_graph(outside: Path, word: Word | None = None) -> Any:
    """Return a graph that calls its model three times; with a word it says so in the second call, and waits there."""
    told = Outside(outside)

    @operation(name="model", ticket="loop", on_unknown="retry")
    def model(number: int) -> str:
        told.append(f"call-{number}")
        if word is not None and number == 1:
            word.say("in call")
            word.wait()
        return f"answer {number}"

    return chain({"agent": lambda _: {"log": [model(number) for number in range(3)]}})


def budgeted(word: Word, url: str, outside: str, *, stays: bool) -> None:
    """Work on graph ``agent`` until it is killed."""
    with Runtime.open(url, lease_ttl=2.0) as runtime:
        graph = budgeted_graph(Path(outside), word if stays else None)
        word.say("ready")
        Worker(runtime, {"agent": graph}, poll_seconds=0.02, sweep_seconds=0.2).run()
