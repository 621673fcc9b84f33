"""What other processes do in the tests about values."""

import datetime as dt
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.types import interrupt

from runtime_persist import Runtime, operation
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.worker import Worker
from tests.support.graphs import chain, resume
from tests.support.processes import Word
from tests.values.graphs import at, keeps

_PART = 10_000_000
_FIRST_CUTS = {"store_content:before:begin", "store_content:before:store_content"}


class Refused(Exception):
    """An exception with a constructor of its own: it cannot be made again of its arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text}!")
        self.code = code


def charges(word: Word | None = None) -> Any:
    """A graph whose node makes a journalled call that is refused; the word comes after the journal has it."""

    @operation(name="charge")
    def charge() -> None:
        raise Refused(402, "no money")

    def node(_: Any) -> None:
        try:
            charge()
        except Refused:
            if word is not None:
                word.say("journalled")
                word.wait()
            raise

    return chain({"node": node})


def refused(word: Word, url: str) -> None:
    """Work on graph ``g`` until the journal has the refusal; then wait to be killed."""
    with Runtime.open(url) as runtime:
        Worker(runtime, {"g": charges(word)}, poll_seconds=0.02).run()


def hour_later(word: Word, url: str, thread_id: str) -> str:
    """Load a moment, and return the one an hour later, in its zone, as universal time."""
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        moment = saver.get_tuple(at(thread_id)).checkpoint["channel_values"]["value"]
    return (moment.astimezone(dt.UTC) + dt.timedelta(hours=1)).isoformat()


def questioner(size: int) -> Any:
    """A graph that asks a question of so many bytes, and logs the answer and how long the question was."""
    question = "x" * size
    return chain({"ask": lambda _: {"log": [interrupt(question), len(question)]}})


def big(size: int) -> bytes:
    """So many bytes that do not compress, the same each time."""
    numbers = random.Random(size)
    return b"".join(numbers.randbytes(min(_PART, size - start)) for start in range(0, size, _PART))


def peak_of(work: Callable[[], Any]) -> int:
    """Return how much more memory this process had at most while it worked, in bytes, as the kernel counts it."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _high_water()
    work()
    return _high_water() - before


def _high_water() -> int:
    (line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM:")]
    return int(line.split()[1]) * 1_024


@contextmanager
def heard(word: Word) -> Iterator[None]:
    """Say now and then that the work goes on: it takes longer than a test waits for a word."""
    done = threading.Event()

    def says() -> None:
        while not done.wait(5):
            word.say("working")

    thread = threading.Thread(target=says)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def stores_big(word: Word, url: str, size: int) -> int:
    """Store a value of that size by a graph's step; return the peak of memory."""
    with heard(word), WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        keeps(lambda: 1, checkpointer=saver).invoke({}, at("warm"))
        graph = keeps(lambda: {"pdf": big(size)}, checkpointer=saver)
        return peak_of(lambda: graph.invoke({}, at("t")))


def loads_big(word: Word, url: str, size: int) -> tuple[int, bool]:
    """Load that value; return the peak of memory, and whether it is the one that was stored."""
    found: list[bytes] = []
    with heard(word), WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        saver.get_tuple(at("warm"))
        peak = peak_of(lambda: found.append(saver.get_tuple(at("t")).checkpoint["channel_values"]["value"]["pdf"]))
    return peak, found[0] == big(size)


def stores_until(word: Word, url: str, size: int, part: int) -> None:
    """Store a value of that size by a graph's step; at that part of its content wait to be killed."""
    parts: list[str] = []

    def reached(cut: str) -> None:
        if cut in _FIRST_CUTS:
            parts.append(cut)
            if len(parts) == part:
                word.say("there")
                word.wait()

    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        saver._core.engine._driver._hook = reached
        keeps(lambda: {"pdf": big(size)}, checkpointer=saver).invoke({}, at("t"))


def answers_big(word: Word, url: str, size: int) -> Any:
    """Answer the question of another process."""
    with Runtime.open(url) as runtime:
        return runtime.bind(questioner(size), name="asks").invoke(resume("yes"), at("t"))["log"]
