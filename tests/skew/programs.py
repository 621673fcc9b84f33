"""What processes with wrong clocks run."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.config import get_config

from runtime_persist import Runtime, operation
from runtime_persist.worker import Worker
from tests.skew import clocks
from tests.soak.programs import Outside
from tests.support.graphs import chain, says

if TYPE_CHECKING:
    from tests.support.processes import Word


def tells(word: Word) -> dict[str, float]:
    """Say what the clocks are."""
    clocks.shift_as_told()
    return clocks.read()


def graphs(word: Word | None, outside: Outside) -> dict[str, Any]:
    """``waits``: its node says that it runs and waits for the word, then calls the outside. ``flaky``: fails once."""

    @operation(name="effect", on_unknown="retry")
    def effect(*, idempotency_key: str) -> str:
        lease = get_config()["configurable"]["__pregel_checkpointer"].owned_run.lease
        outside.append(lease.run_id, idempotency_key, lease.epoch)
        return "done"

    def waits(_: Any) -> Any:
        own = get_config()["configurable"]
        word.say("in node", own["__pregel_checkpointer"].owned_run.lease.run_id)
        said = word.wait()
        return {"log": [said, effect()]}

    def flaky(_: Any) -> Any:
        run_id = get_config()["configurable"]["__pregel_checkpointer"].owned_run.lease.run_id
        if ["flaky", run_id] not in outside.lines():
            outside.append("flaky", run_id)
            msg = "the first time"
            raise ValueError(msg)
        return {"log": ["flaky"]}

    return {
        "waits": chain({"begins": says("begins"), "waits": waits, "ends": says("ends")}),
        "flaky": chain({"flaky": flaky}),
    }


def worker(word: Word, url: str, outside: str, lease_ttl: float, pythons_hours: int = 0) -> list[Any]:
    """Work with a wrong clock until SIGTERM; return what was reported."""
    clocks.shift_as_told(pythons_hours)
    reports: list[Any] = []
    with Runtime.open(url, lease_ttl=lease_ttl) as runtime:
        working = Worker(
            runtime,
            graphs(word, Outside(Path(outside))),
            poll_seconds=0.05,
            sweep_seconds=0.2,
            report=lambda what, facts: reports.append((what, facts.get("code"))),
        )
        signal.signal(signal.SIGTERM, lambda *_: working.stop())
        word.say("ready", runtime.engine.worker_id, clocks.read())
        working.run()
    return reports
