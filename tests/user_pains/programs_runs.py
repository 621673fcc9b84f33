"""What the real processes of the rows about queued runs do (A6, B2, C7, J2)."""

import os
import signal
from collections.abc import Mapping
from typing import Any

from runtime_persist import Runtime, operation
from runtime_persist.commands.commit_workflow_checkpoint import CommitWorkflowCheckpoint
from runtime_persist.coordinator import CommitCoordinator
from runtime_persist.worker import Worker
from tests.support.graphs import chain, says
from tests.support.processes import Word


def dies_before_the_first_put(_: Word, url: str) -> None:
    """B2: claim a run and be killed when its first checkpoint is to be sent: nothing of it is stored."""
    commit = CommitCoordinator.commit

    def killing(self: Any, command: Any) -> Any:
        if isinstance(command, CommitWorkflowCheckpoint):
            os.kill(os.getpid(), signal.SIGKILL)
        return commit(self, command)

    CommitCoordinator.commit = killing  # type: ignore[method-assign]
    with Runtime.open(url) as runtime:
        Worker(runtime, {"g": chain({"node": says("x")})}, poll_seconds=0.02).run()


def charges(word: Word | None = None) -> Any:
    """C7: a journalled call whose result is stored, then a node that waits for the word."""

    @operation(name="charge", on_unknown="ask")
    def charge(what: str, *, idempotency_key: str) -> str:
        return f"{what} under {idempotency_key}"

    def node(_: Any) -> Any:
        charged = charge("order 7")
        if word is not None:
            word.say("charged", charged)
            word.wait()
        return {"log": [charged]}

    return chain({"charge": node})


def charges_and_waits(word: Word, url: str) -> None:
    """C7: work until the call is journalled, and wait for the word that never comes."""
    with Runtime.open(url) as runtime:
        Worker(runtime, {"g": charges(word)}, poll_seconds=0.02).run()


def sweeps(_: Word, url: str, nodes: Mapping[str, str], times: int) -> list[str]:
    """J2: a worker whose graph has these nodes looks for work some times; what it reports."""
    reports: list[str] = []
    with Runtime.open(url) as runtime:
        graphs = {"g": chain({name: says(word) for name, word in nodes.items()})}
        for _ in range(times):
            Worker(runtime, graphs, poll_seconds=0.01, report=lambda what, _: reports.append(what)).run(until_idle=True)
    return reports
