"""What the processes of these tests run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime_persist import Runtime
from runtime_persist.worker import Worker
from tests.soak.programs import Outside
from tests.support.graphs import chain, fanned, says

if TYPE_CHECKING:
    from tests.support.processes import Word


def registry() -> dict[str, Any]:
    """A graph of two quick steps."""
    return {"g": chain({"node": says("x"), "after": says("y")})}


def starter(word: Word, url: str, name: str, times: int) -> list[str]:
    """At the word, queue runs on a thread on which others queue runs too, while workers finish them."""
    with Runtime.open(url) as runtime:
        runtime.bind(registry()["g"], name="g")
        word.say("ready")
        word.wait()
        return [
            runtime.runs.start("g", {"log": [f"{name} {n}"]}, thread_id="t", idempotency_key=f"{name} {n}").run_id
            for n in range(times)
        ]


def worker(word: Word, url: str, lease_ttl: float = 2.0) -> None:
    """Work on graph ``g`` until it is killed."""
    with Runtime.open(url, lease_ttl=lease_ttl) as runtime:
        word.say("ready", runtime.engine.worker_id)
        Worker(runtime, registry(), poll_seconds=0.02, sweep_seconds=0.2).run()


def fan(word: Word, url: str, outside: str, waits: str) -> None:
    """Work on graph ``fan``: three tasks, then their join; where ``waits`` says so it says that it runs, and waits."""
    told = Outside(Path(outside))

    def enters(name: str) -> None:
        told.append(name)
        if name == waits:
            word.say("in node")
            word.wait()

    def work(state: Any) -> Any:
        enters(f"work{state['item']}")
        return {"log": [f"did {state['item']}"]}

    def join(_: Any) -> Any:
        enters("join")
        return {"log": ["joined"]}

    with Runtime.open(url, lease_ttl=2.0) as runtime:
        Worker(runtime, {"fan": fanned(work, join)}, poll_seconds=0.02).run()
