"""Threads as each schema version leaves them behind, as text: every row of every table.

A version that others build on has a file in ``earlier/``, written once by ``python -m
tests.user_pains.earlier_stories`` with the code of that version, and never again: what reads it is the code of the day.
The rows of a version that is not released yet are made when a test asks for them, and restored in other databases than
the one they come from.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import sqlite3
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict

from alembic import command
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Send, interrupt

from runtime_persist import RetryPolicy, Runtime, __version__, operation
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import ownership
from runtime_persist.engine import run as flow
from runtime_persist.schema import metadata, migrate
from runtime_persist.worker import Worker
from runtime_persist.worker.capacity import Instance
from runtime_persist.worker.sweep import sweep
from tests.fixtures.raw import PostgresRaw, Raw, SqliteRaw, connect, wait_until

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


def working(second: Any = lambda _: {"log": ["second"]}) -> Any:
    """Two steps; what the second does is not part of the graph's version."""
    return _chain({"first": lambda _: {"log": ["first"]}, "second": second})


LEFT_OPEN = {
    "open queued": "queued",
    "open dispatching": "dispatching",
    "open running": "running",
    "open stopping": "running",
    "open lost": "lost",
    "open waiting": "waiting_approval",
    "open retry": "retry_wait",
}
"""Thread -> status of its run, of every status in which workers leave runs open."""


def _abandoned(runtime: Runtime, *threads: str) -> None:
    """Let a worker leave the runs of threads in the middle of their second step."""
    inside = threading.Semaphore(0)
    never = threading.Event()

    def hangs(_: Any) -> dict[str, Any]:
        inside.release()
        never.wait()
        return {}

    for thread in threads:
        runtime.runs.start("working", {"log": []}, thread_id=thread)
    worker = Worker(runtime, {"working": working(hangs)}, slots=len(threads), poll_seconds=0.01)
    thread = threading.Thread(target=worker.run)
    thread.start()
    for _ in threads:
        assert inside.acquire(timeout=30)
    worker.stop()
    worker.stop()  # the second time it waits for nobody
    thread.join()
    never.set()


def _fails(_: Any) -> dict[str, Any]:
    msg = "no luck"
    raise ValueError(msg)


def leave_open(url: str) -> None:
    """Leave a run in every open status, as workers that are killed do."""
    with Runtime.open(url) as runtime:
        runtime.bind(paying(), name="paying")
        runtime.bind(working(), name="working")
        runtime.runs.start("paying", GIVEN, thread_id="open waiting")
        slow = RetryPolicy(backoff=3_600, backoff_max=3_600)
        runtime.runs.start("working", {"log": []}, thread_id="open retry", retry=slow)
        Worker(runtime, {"paying": paying(), "working": working(_fails)}, poll_seconds=0.01).run(until_idle=True)
        _abandoned(runtime, "open running", "open stopping")
        with Runtime.open(url, lease_ttl=0.2) as brief:
            _abandoned(brief, "open lost")
        (lost,) = runtime.runs.list(thread_id="open lost")
        wait_until(lambda: sweep(runtime.engine) or runtime.runs.get(lost.run_id).status == "lost", "it is lost")
        runtime.runs.cancel(runtime.runs.list(thread_id="open stopping")[0].run_id)
        claimed = runtime.runs.start("working", {"log": []}, thread_id="open dispatching")
        row = {"run_id": claimed.run_id, "thread_id": claimed.thread_id, "graph": "working"}
        instance = Instance(runtime.engine, 1, {})
        instance.keep_reported([])
        serde = runtime.checkpointer.serde
        owned, _ = flow(ownership.claim(runtime.engine, serde, row, instance_id=instance.instance_id))
        runtime.engine.heartbeats.remove(owned)
        runtime.runs.start("working", {"log": []}, thread_id="open queued")
        found = {run.thread_id: run.status for run in runtime.runs.list() if run.thread_id in LEFT_OPEN}
        assert found == LEFT_OPEN, found


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
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/now.db"
        leave_open(url)
        with Runtime.open(url) as runtime:
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


def database(url: str, version: str, rows: str) -> None:
    """Make the tables of a schema version at ``url``, and fill them with the rows that version ``rows`` left."""
    parsed = parse_url(url)
    dialect = dialect_of(parsed)
    dialect.with_connection(
        parsed.location, lambda connection: command.upgrade(migrate._config(dialect, connection=connection), version)
    )
    if parsed.dialect == "postgresql":
        raw: Raw = PostgresRaw(parsed.location)
    else:
        raw = SqliteRaw(sqlite3.connect(parsed.location, isolation_level=None), own=True)
    restore(raw, rows)
    raw.close()
    assert migrate.current(parsed, dialect) == version


def main() -> None:
    """Keep the rows of the schema this code writes, from now on: when the changelog names its release."""
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    if not re.search(rf"^## \[?{re.escape(__version__)}\b", changelog.read_text(), re.MULTILINE):
        sys.exit(f"{__version__} is not released: the rows of schema {migrate.VERSION} are made when a test needs them")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{migrate.VERSION}.json").write_text(rows_of(migrate.VERSION))


if __name__ == "__main__":
    main()
