"""What other processes do in the tests about values."""

import datetime as dt
from typing import Any

from runtime_persist import Runtime, operation
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.worker import Worker
from tests.support.graphs import chain
from tests.support.processes import Word
from tests.values.graphs import at


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
