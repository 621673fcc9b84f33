"""What real processes do with events and streams. Forked from a server that has opened nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph.config import get_stream_writer

from runtime_persist import Runtime
from runtime_persist.errors import RuntimePersistError
from runtime_persist.worker import Worker
from tests.fixtures.raw import wait_until
from tests.support.graphs import chain, says

if TYPE_CHECKING:
    from tests.support.processes import Word


def consumer(word: Word, url: str, name: str, *, pauses: bool) -> list[tuple[str, int]]:
    """Consume what there is; with ``pauses`` say each event and wait for the word before the next one is asked for."""
    found = []
    with Runtime.open(url) as runtime:
        for event in runtime.events(consumer=name, wait=False):
            found.append((event.run_id, event.seq))
            if pauses:
                word.say("event", event.run_id, event.seq)
                word.wait()
    return found


def acknowledger(word: Word, url: str, name: str) -> str:
    """Consume everything, and acknowledge at the word; return how that ended."""
    with Runtime.open(url) as runtime:
        events = runtime.events(consumer=name, wait=False)
        found = iter(events)
        for _ in range(2):
            next(found)
        word.say("ready")
        word.wait()
        try:
            events.ack()
        except RuntimePersistError as error:
            return error.code
        return "acknowledged"


def streaming_worker(word: Word, url: str) -> None:
    """Work on graph ``g``: its node streams what the test gives it, word by word; None: it is done."""

    def node(_: Any) -> Any:
        write = get_stream_writer()
        word.say("in node")
        said = []
        while (given := word.wait()) is not None:
            write(given)
            said.append(given)
            word.say("wrote")
        return {"log": said}

    with Runtime.open(url) as runtime:
        worker = Worker(runtime, {"g": chain({"node": node, "after": says("after")})}, poll_seconds=0.02)
        worker.run()


def starter(word: Word, url: str) -> str:
    """Start a run of ``g`` at the word, in a process without a worker; return its result's log."""
    with Runtime.open(url) as runtime:
        word.say("ready")
        word.wait()
        run = runtime.runs.start("g", {"log": []}, thread_id="t")
        return str(run.run_id)


def waiter(word: Word, url: str, run_id: str) -> Any:
    """Wait for a run's result in a process of its own."""
    with Runtime.open(url) as runtime:
        watching = runtime.engine.notifications.watch("run of nobody")
        wait_until(lambda: runtime.engine.notifications.hears, "messages arrive")
        word.say("ready")
        result = runtime.runs.result(run_id, timeout=30)
        watching.close()
        return result
