"""Threads as each schema version leaves them behind, as text: every row of every table.

A version that was released has a file in ``earlier/``, written once by ``python -m tests.user_pains.earlier_stories``
when it is released, and never again: what reads it is the code of the day. The rows of a version that is not released
yet are made when a test asks for them, and restored in other databases than the one they come from.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Send, interrupt

from runtime_persist import Runtime, __version__, operation
from runtime_persist.schema import metadata, migrate
from tests.fixtures.raw import connect

if TYPE_CHECKING:
    from tests.fixtures.raw import Raw

FOLDER = Path(__file__).with_name("earlier")
BIG = "long ago " * 20_000
CHARGED: list[str] = []
"""What the outside world was asked for, in this process."""


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    items: list[int]
    big: str


@operation(name="charge")
def charge(what: str) -> str:
    CHARGED.append(what)
    return f"charged {what}"


def _pay(state: State) -> dict[str, Any]:
    receipt = charge("order 7")
    answer = interrupt("ship it?")
    return {"log": [receipt, answer], "messages": [AIMessage(f"{receipt}, {answer}", id="2")]}


def _chain(nodes: dict[str, Any], **options: Any) -> Any:
    builder = StateGraph(State)
    last = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    return builder.compile(**options)


def paying() -> Any:
    """A journalled call, then a question; big content behind it."""
    return _chain({"pay": _pay, "after": lambda _: {"log": ["after"], "big": BIG}})


def nested() -> Any:
    """The same inside a subgraph with checkpoints of its own."""
    inner = _chain({"pay": _pay}, checkpointer=True)
    return _chain({"before": lambda _: {"log": ["before"], "big": BIG}, "inner": inner})


def sending() -> Any:
    """Stops when its Sends are queued and none of them ran."""
    builder = StateGraph(State)
    builder.add_node("work", lambda given: {"log": [f"did {given['item']}"]})
    builder.add_node("join", lambda _: {"log": ["joined"]})
    builder.add_conditional_edges(START, lambda state: [Send("work", {"item": item}) for item in state["items"]])
    builder.add_edge("work", "join")
    builder.add_edge("join", END)
    return builder.compile(interrupt_before=["work"])


GIVEN: dict[str, Any] = {"log": [], "messages": [HumanMessage("pay order 7", id="1")]}
GRAPHS = {"paying": paying, "nested": nested, "sending": sending}


def live(runtime: Runtime) -> None:
    """Leave a thread of each graph in the middle, and one that is done."""
    for name, make in GRAPHS.items():
        graph = runtime.bind(make(), name=name)
        graph.invoke({**GIVEN, "items": [1, 2, 3]}, {"configurable": {"thread_id": name}})
    saver = runtime.checkpointer
    done = _chain({"a": lambda _: {"log": ["a"], "big": BIG}}, checkpointer=saver)
    done.invoke(GIVEN, {"configurable": {"thread_id": "done"}, "metadata": {"tenant": "acme"}})


def dumped(raw: Raw) -> dict[str, list[dict[str, Any]]]:
    """Return all rows; bytes as ``{"hex": …}``."""
    return {
        table.name: [
            {name: {"hex": bytes(value).hex()} if isinstance(value, bytes) else value for name, value in row.items()}
            for row in raw.rows(f"SELECT * FROM {table.name}")
        ]
        for table in metadata.sorted_tables
    }


def versions() -> list[str]:
    """Return the schema versions there are rows of: those with a file, and the one this code writes."""
    return sorted({*(path.stem for path in FOLDER.glob("*.json")), migrate.VERSION}, key=_number)


def _number(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@functools.cache
def rows_of(version: str) -> str:
    """Return the rows of a schema version as JSON."""
    kept = FOLDER / f"{version}.json"
    if kept.exists():
        return kept.read_text()
    with tempfile.TemporaryDirectory() as folder, Runtime.open(f"sqlite:///{folder}/now.db") as runtime:
        live(runtime)
        raw = connect(runtime.engine)
        text = json.dumps(dumped(raw), indent=1)
        raw.close()
    return text + "\n"


def restore(raw: Raw, version: str) -> None:
    """Put the rows of a schema version into its empty tables."""
    for table, rows in json.loads(rows_of(version)).items():
        raw.rows(f"DELETE FROM {table}")
        for row in rows:
            values = [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in row.values()]
            marks = ", ".join("?" * len(values))
            raw.rows(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *values)


def main() -> None:
    """Keep the rows of the schema this code writes, from now on: when the changelog names its release."""
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    if not re.search(rf"^## \[?{re.escape(__version__)}\b", changelog.read_text(), re.MULTILINE):
        sys.exit(f"{__version__} is not released: the rows of schema {migrate.VERSION} are made when a test needs them")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{migrate.VERSION}.json").write_text(rows_of(migrate.VERSION))


if __name__ == "__main__":
    main()
