"""What old versions of the stock savers left behind: formats 1 to 4, legacy keys, columns that were not there yet."""

import json
import sqlite3
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from runtime_persist.adapters.workflow.importing import import_threads
from runtime_persist.errors import UntrustedType
from tests.support.checkpoints import TASK, at, new_checkpoint
from tests.support.graphs import State

SENDS = "__pregel_tasks"


def put(saver, values, config=None, metadata=None, **fields):
    """Put a checkpoint of an old saver."""
    made = new_checkpoint(values, **fields)
    return saver.put(config or at(), made, metadata or {"source": "loop", "step": 1}, made["channel_versions"])


def get(saver, config):
    return saver.get_tuple(config)


@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_a_checkpoint_of_each_format_comes_with_its_keys_and_versions(stock, saver, v):
    with stock.opens() as source:
        at_root = put(source, {"a": 1}, v=v)
        legacy = {"writes": {"node": {"a": 2}}, "source": "loop", "step": 2, "thread_id": "t"}
        fields = {"versions_seen": {"node": {"a": 1}}, "channel_versions": {"a": 7, "b": "3.5"}}
        placed = put(source, {"a": 2, "b": [True, None]}, at_root, metadata=legacy, v=v, **fields)
        theirs = source.get_tuple(placed)
    assert import_threads(saver, stock.url).failed == {}
    mine = get(saver, placed)
    assert (mine.checkpoint, mine.metadata, mine.parent_config) == (
        theirs.checkpoint,
        theirs.metadata,
        theirs.parent_config,
    )
    assert (mine.checkpoint["v"], mine.checkpoint["channel_versions"]) == (v, {"a": 7, "b": "3.5"})


def test_values_of_channels_without_a_version_come_too(stock, saver):
    with stock.opens() as source:
        placed = put(source, {"a": 1, "b": 2, "c": None}, channel_versions={"a": "1"})
        theirs = source.get_tuple(placed)
    assert theirs.checkpoint["channel_values"]["b"] == 2
    assert import_threads(saver, stock.url).failed == {}
    assert get(saver, placed).checkpoint == theirs.checkpoint
    assert import_threads(saver, stock.url).checkpoints == 0


@pytest.mark.parametrize("v", [1, 2, 3])
def test_sends_that_an_old_format_keeps_with_the_parent_are_there(stock, saver, v):
    sends = [Send("work", {"item": 1}), Send("work", {"item": 2})]
    with stock.opens() as source:
        parent = put(source, {"a": 1}, v=v)
        source.put_writes(parent, [(SENDS, sends[1])], TASK, "~__pregel_pull, b")
        source.put_writes(parent, [(SENDS, sends[0])], TASK.replace("8", "9"), "~__pregel_pull, a")
        child = put(source, {"a": 2}, parent, v=v)
    assert import_threads(saver, stock.url).failed == {}
    mine = get(saver, child)
    assert mine.checkpoint["channel_values"] == {"a": 2, SENDS: sends}
    assert import_threads(saver, stock.url).checkpoints == 0


def test_a_graph_runs_the_sends_of_a_thread_of_format_three(stock, saver):
    builder = StateGraph(State)
    builder.add_node("plan", lambda _: {"log": ["plan"]})
    builder.add_node("work", lambda given: {"log": [given["item"]]})
    builder.add_edge(START, "plan")
    with stock.opens() as source:
        one, two = (f"{n:032}.0" for n in (1, 2))
        metadata = {"source": "loop", "step": 0, "writes": None}
        parent = put(source, {"log": []}, metadata=metadata, v=3, channel_versions={"log": one})
        source.put_writes(parent, [("log", ["plan"]), (SENDS, Send("work", {"item": 5}))], TASK, "~__pregel_pull, plan")
        seen = {"plan": {"branch:to:plan": one}, "__input__": {}}
        put(source, {"log": ["plan"]}, parent, v=3, versions_seen=seen, channel_versions={"log": two})
    assert import_threads(saver, stock.url).failed == {}
    graph = builder.compile(checkpointer=saver)
    assert graph.get_state(at()).next == ("work",)
    assert graph.invoke(None, at())["log"] == ["plan", 5]


def test_writes_keep_their_order_positions_and_paths(stock, saver, raw):
    with stock.opens() as source:
        placed = put(source, {"a": 1})
        source.put_writes(placed, [("x", 1), ("__error__", "bad"), ("y", {"n": [1]})], "task b", "~__pregel_pull, 1")
        source.put_writes(placed, [("x", 2)], "task a", "~__pregel_pull, 2")
        source.put_writes(placed, [("__resume__", ["yes"])], "00000000-0000-0000-0000-000000000000")
        theirs = source.get_tuple(placed).pending_writes
    import_threads(saver, stock.url)
    assert get(saver, placed).pending_writes == theirs
    rows = raw.rows("SELECT task_id, task_path, idx, channel FROM rp_writes ORDER BY task_id, idx")
    assert [tuple(row.values()) for row in rows] == [
        ("00000000-0000-0000-0000-000000000000", "", -4, "__resume__"),
        ("task a", "~__pregel_pull, 2", 0, "x"),
        ("task b", "~__pregel_pull, 1", -1, "__error__"),
        ("task b", "~__pregel_pull, 1", 0, "x"),
        ("task b", "~__pregel_pull, 1", 2, "y"),
    ]


def test_writes_whose_checkpoint_was_never_stored_come_along(stock, saver, raw):
    with stock.opens() as source:
        placed = put(source, {"a": 1})
        early = at("t", new_checkpoint({})["id"])
        source.put_writes(early, [("x", 1)], TASK)
    import_threads(saver, stock.url)
    assert raw.value("SELECT checkpoint_id FROM rp_writes") == early["configurable"]["checkpoint_id"]
    assert get(saver, at()).config == placed


def test_values_of_many_types_come_back_equal(stock, saver):
    values = {
        "message": AIMessage("hi", id="1", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        "set": {f"item {n}" for n in range(50)},
        "bytes": b"\0\xff" * 9_000,
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        "big": "x" * 200_000,
    }
    with stock.opens() as source:
        placed = put(source, values)
    assert import_threads(saver, stock.url).failed == {}
    mine = get(saver, placed).checkpoint["channel_values"]
    assert mine == values
    assert {key: type(value) for key, value in mine.items()} == {key: type(value) for key, value in values.items()}
    assert import_threads(saver, stock.url).checkpoints == 0


def test_many_checkpoints_in_many_namespaces_with_equal_ids(stock, saver):
    with stock.opens() as source:
        config, ids = at(), []
        for step in range(45):
            config = put(source, {"a": step}, config)
            ids.append(config["configurable"]["checkpoint_id"])
        for ns in ("inner:1", "inner:2"):
            made = new_checkpoint({"a": ns}, id=ids[20])
            source.put(at(ns=ns), made, {}, made["channel_versions"])
    report = import_threads(saver, stock.url)
    assert (report.checkpoints, report.failed) == (47, {})
    assert [one.config["configurable"]["checkpoint_id"] for one in saver.list(at())] == ids[::-1]
    assert get(saver, at(ns="inner:2")).checkpoint["channel_values"] == {"a": "inner:2"}


def test_a_class_that_nobody_loaded_is_not_made_and_the_thread_is_named(tmp_path, saver):
    kind, data = JsonPlusSerializer().dumps_typed(new_checkpoint({"a": Send("n", 1)}))
    assert kind == "msgpack"
    changed = data.replace(b"langgraph.types", b"langgraph.typez")
    file = SqliteFile(tmp_path / "old.db")
    file.insert("c1", None, "msgpack", changed, b"{}")
    report = import_threads(saver, file.path)
    assert type(report.failed["t"]) is UntrustedType
    assert saver.get_tuple(at()) is None


class SqliteFile:
    """A file as a SqliteSaver of 2024 made it: rollback journal, no task_path."""

    def __init__(self, path) -> None:
        self.path = path
        self.rows(
            "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
            "checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, "
            "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
        )
        self.rows(
            "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
            "checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, "
            "type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))"
        )

    def rows(self, sql, *params):
        connection = sqlite3.connect(self.path)
        connection.execute(sql, params)
        connection.commit()
        connection.close()

    def insert(self, checkpoint_id, parent, kind, data, metadata):
        sql = "INSERT INTO checkpoints VALUES ('t', '', ?, ?, ?, ?, ?)"
        self.rows(sql, checkpoint_id, parent, kind, data, metadata)


def test_a_file_of_2024_is_read_and_not_a_byte_of_it_is_changed(tmp_path, saver):
    file = SqliteFile(tmp_path / "old.db")
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": "hi", "id": "1"},
    }
    old = new_checkpoint({"messages": [message], "n": 1}, v=1, id="1ef4f797-8335-6428-8001-8a1503f9b875")
    metadata = json.dumps({"source": "loop", "step": 1, "writes": {"node": {"n": 1}}}).encode()
    file.insert(old["id"], None, "json", json.dumps(old).encode(), metadata)
    file.rows("INSERT INTO writes VALUES ('t', '', ?, 'task', 0, 'n', 'json', ?)", old["id"], b"[2]")
    before = file.path.read_bytes()
    assert import_threads(saver, file.path).failed == {}
    found = get(saver, at())
    assert found.checkpoint["channel_values"] == {"messages": [AIMessage("hi", id="1")], "n": 1}
    assert found.metadata["writes"] == {"node": {"n": 1}}
    assert found.pending_writes == [("task", "n", [2])]
    assert file.path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("old.db")] == ["old.db"]
