"""What the real processes of these rows run."""

import os
import signal
import time
from typing import Any

from runtime_persist import Runtime, operation
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from tests.support.graphs import chain, config
from tests.support.processes import Word
from tests.support.programs import pausing


def sits_in_a_node(word: Word, url: str) -> Any:
    """A8: hold a thread in the second node until the word comes; return the result."""
    nodes = {"first": lambda _: {"log": ["first"]}, "sits": pausing(word, {"log": ["sits"]})}
    with Runtime.open(url) as runtime:
        return runtime.bind(chain(nodes), name="g").invoke({"log": ["in"]}, config(), durability="sync")


def letters(path: str) -> Any:
    """B1: two nodes that each append their letter to a file, through the journal."""

    @operation(name="append", on_unknown="ask")
    def append(letter: str) -> str:
        with open(path, "a") as file:  # noqa: PTH123 (appends)
            file.write(letter)
        return letter

    return chain({letter: lambda _, letter=letter: {"log": [append(letter)], "n": 1} for letter in "ab"})


def dies_in_a_write(_: Word, url: str, path: str, method: str, when: str) -> None:
    """B1: task writes come 300 ms late; SIGKILL before or after the put of step 1, or the task writes before it."""
    put, put_writes = WorkflowCheckpointAdapter.put, WorkflowCheckpointAdapter.put_writes

    def die(here: str, at: str) -> None:
        if (here, at) == (method, when):
            os.kill(os.getpid(), signal.SIGKILL)

    def killing_put(self: Any, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        step = metadata["step"] == 1
        if step:
            die("put", "before")
        stored = put(self, config, checkpoint, metadata, versions)
        if step:
            die("put", "after")
        return stored

    def late_writes(self: Any, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        of_a_node = any(channel == "n" for channel, _ in writes) and "a" in dict(writes).get("log", ())
        if of_a_node:
            time.sleep(0.3)
            die("put_writes", "before")
        put_writes(self, config, writes, task_id, task_path)
        if of_a_node:
            die("put_writes", "after")

    WorkflowCheckpointAdapter.put = killing_put  # type: ignore[method-assign]
    WorkflowCheckpointAdapter.put_writes = late_writes  # type: ignore[method-assign]
    with Runtime.open(url) as runtime:
        runtime.bind(letters(path), name="g").invoke({"log": []}, config(), durability="sync")
