"""A channel that doubles (E3), late writes to a deleted thread (E5), what deleting leaves (E7)."""

from __future__ import annotations

import itertools
import json
import operator
import random
from typing import Annotated, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from runtime_persist import operation
from runtime_persist.contentstore import unpack
from runtime_persist.errors import ThreadDeleted, ValueTooLarge
from runtime_persist.model.payload import PayloadRef
from tests.fixtures.raw import wait_until
from tests.support.checkpoints import Steps, at, new_checkpoint
from tests.support.collecting import later, whole
from tests.support.graphs import asks, chain, config, nested, resume, says

CAP = 64_000_000
STEPS = 20


class Grows(TypedDict):
    log: Annotated[list[str], operator.add]
    note: str


def doubling(**options):
    """A node that returns its reducer channel whole; `note` stays as small as it is."""
    builder = StateGraph(Grows)
    builder.add_node("again", lambda state: {"log": state["log"], "note": "small"})
    builder.add_edge(START, "again")
    builder.add_conditional_edges("again", lambda _: "again")
    return builder.compile(**options)


def test_e3_a_channel_that_doubles_is_refused_by_name_before_it_is_written_and_the_inspector_shows_it(
    open_runtime, raw_of, cli
):
    runtime = open_runtime(max_value_bytes=CAP)
    graph = doubling(checkpointer=runtime.checkpointer)
    with pytest.raises(ValueTooLarge) as caught:
        graph.invoke({"log": ["x" * 1_000], "note": ""}, {**config(), "recursion_limit": STEPS})
    found = caught.value
    assert (found.details["channel"], found.details["max_bytes"]) == ("log", CAP)
    assert CAP < found.details["size"] < 2 * CAP + STEPS
    assert all(said in str(found) for said in ("log", f"{CAP:,}", f"{found.details['size']:,}"))
    raw = raw_of(runtime)
    assert raw.value("SELECT max(size) FROM rp_blobs") <= CAP, "nothing of it was written"

    last = runtime.checkpointer.get_tuple(at())
    assert last.checkpoint["channel_values"]["log"] == ["x" * 1_000] * 2**15
    assert graph.get_state(config()).values["note"] == "small"
    (seen,) = json.loads(cli("thread", "show", "t", "--json").stdout)["namespaces"]
    (largest, *others) = seen["channels"]
    assert largest["channel"] == "log"
    assert CAP / 4 < largest["bytes"] <= CAP
    assert all(channel["bytes"] < 1_000 for channel in others)
    sizes = [one["bytes"] for one in seen["checkpoints"]]
    grown = [newer / older for newer, older in itertools.pairwise(sizes[:10])]
    assert all(1.9 < factor < 2.1 for factor in grown), "it doubled from checkpoint to checkpoint"
    assert "log" in cli("thread", "show", "t").stdout


def rows_of_thread(raw, thread_id):
    """How many rows of each table belong to a thread: by its id, or by one of its runs."""
    found = {}
    for table, rows in raw.dump().items():
        found[table] = sum(thread_id in dict(row).values() for row in rows)
    return {table: count for table, count in found.items() if count}


@pytest.mark.parametrize("late", ["put", "put_writes"])
async def test_e5_a_late_write_does_not_bring_a_deleted_thread_back(saver, raw, way, late):
    steps = Steps(way, saver)
    kept = await steps.put(a="old")
    await way(saver, "delete_thread", "t")
    before = raw.dump()
    arguments = {
        "put": (new_checkpoint({"a": "late"}, {"a": "2"}), {}, {"a": "2"}),
        "put_writes": ([("a", "late")], "task"),
    }
    with pytest.raises(ThreadDeleted) as caught:
        await way(saver, late, kept, *arguments[late])
    assert caught.value.details["thread_id"] == "t"
    assert await way(saver, "get_tuple", at()) is None
    assert await way(saver, "get_tuple", kept) is None
    assert await way.all(saver, "list", at()) == []
    assert raw.dump() == before
    assert rows_of_thread(raw, "t") == {}
    for table in ("rp_checkpoints", "rp_writes", "rp_heads", "rp_runs", "rp_events", "rp_operations"):
        assert raw.value(f"SELECT count(*) FROM {table}") == 0


async def test_e5_a_new_run_on_the_id_of_a_deleted_thread_begins_clean(runtime, raw, way):
    graph = runtime.bind(chain({"a": says("a"), "b": asks("why?")}), name="g")
    await way(graph, "invoke", {"log": ["old"], "n": 7}, config())
    await way(runtime.checkpointer, "delete_thread", "t")
    assert rows_of_thread(raw, "t") == {}
    await way(graph, "invoke", {"log": ["new"]}, config())
    found = await way(graph, "invoke", resume("because"), config())
    assert (found["log"], found["n"]) == (["new", "a", "because"], 0)
    (run,) = runtime.runs.list(thread_id="t")
    assert (run.status, run.attempt_no) == ("succeeded", 2)
    history = await way.all(runtime.checkpointer, "list", at())
    assert "old" not in repr(history)


# --- E7 -------------------------------------------------------------------------------------------------------------

NEIGHBOURS = ("t10", "T1", "t", "t1 ", "t%", "t_")


@operation(name="note")
def note(text):
    return f"noted {text}"


def everything(runtime):
    """A graph that leaves rows in every table: a subgraph that asks, and a journalled call before it."""
    inner = chain({"sub": lambda state: {"log": [note(state["log"][0])]}, "ask": asks("why?")}, checkpointer=True)
    return runtime.bind(nested(inner), name="everything")


def test_e7_deleting_a_thread_leaves_no_row_of_it_and_its_neighbours_whole(runtime, raw):
    graph = everything(runtime)
    for thread_id in (*NEIGHBOURS, "t1"):
        assert graph.invoke({"log": [f"said in <{thread_id}>"]}, config(thread_id))["__interrupt__"]
    (run,) = runtime.runs.list(thread_id="t1")
    assert run.status == "waiting_approval"
    operations = raw.rows("SELECT operation_id FROM rp_operations WHERE thread_id = ?", "t1")
    assert len(operations) == 1
    spaces = {row["checkpoint_ns"] for row in raw.rows("SELECT checkpoint_ns FROM rp_heads WHERE thread_id = ?", "t1")}
    assert len(spaces) == 2, "the root's and the subgraph's"
    ids = {"t1", run.run_id, operations[0]["operation_id"]}
    before = raw.dump()
    mine = {table for table, rows in before.items() if any(ids & set(map(str, dict(row).values())) for row in rows)}
    assert mine >= {"rp_threads", "rp_heads", "rp_checkpoints", "rp_writes", "rp_runs", "rp_attempts", "rp_events",
                    "rp_operations", "rp_operation_tries"}  # fmt: skip

    for _ in range(2):  # twice is no error
        runtime.checkpointer.delete_thread("t1")
        after = raw.dump()
        for table, rows in after.items():
            for row in rows:
                assert not ids & set(map(str, dict(row).values())), table
                assert "said in <t1>" not in repr(row), table
    for table, rows in before.items():
        if table not in {"rp_threads", "rp_receipts", "rp_blobs", "rp_cursors"}:  # the last: where positions go on
            theirs = [row for row in rows if not ids & set(map(str, dict(row).values()))]
            assert after[table] == theirs, table
    assert runtime.checkpointer.get_tuple(at("t1")) is None
    assert runtime.runs.list(thread_id="t1") == []
    for thread_id in NEIGHBOURS:
        found = graph.invoke(resume("because"), config(thread_id))["log"]
        assert f"noted said in <{thread_id}>" in found
        assert found[-2:] == ["because", "after"]


def said_in(raw, thread_id):
    """How many pieces of content hold what was said in a thread."""
    contents = [unpack(bytes(row["content"])) for row in raw.rows("SELECT content FROM rp_blobs")]
    return sum(f"said in <{thread_id}>".encode() in content for content in contents)


def test_e7_collecting_removes_the_content_of_a_deleted_thread_and_keeps_what_others_share(runtime, raw, cli):
    graph = everything(runtime)
    shared = [f"{n} shared " * 60 for n in range(200)]  # so many that its reference lies in pages
    for thread_id in ("t10", "t1"):
        own = [f"{n} said in <{thread_id}> " * 2_000 for n in range(20)]
        assert graph.invoke({"log": [*own, *shared]}, config(thread_id))["__interrupt__"]
    (result,) = raw.rows("SELECT result FROM rp_operations WHERE thread_id = ?", "t1")
    assert PayloadRef.decoded(bytes(result["result"])).inline is None
    others = said_in(raw, "t10")
    assert others == said_in(raw, "t1") > 10

    runtime.checkpointer.delete_thread("t1")
    assert "removed 0 of" in cli("db", "collect").stdout
    assert said_in(raw, "t1") > 10, "a day has to go by"
    later(raw, 25, runtime.checkpointer)
    assert "removed 0 of" not in cli("db", "collect").stdout
    assert (said_in(raw, "t1"), said_in(raw, "t10")) == (0, others)
    whole(runtime.checkpointer)
    assert "removed 0 of" in cli("db", "collect").stdout, "nothing is left to do"
    found = graph.invoke(resume("because"), config("t10"))["log"]
    assert found[20:220] == shared
    assert found[-2:] == ["because", "after"]


def test_e7_the_space_of_deleted_rows_is_used_again(runtime, raw):
    """Filling and deleting again and again does not make the database grow (values are small: content stays)."""
    saver = runtime.checkpointer
    sqlite = runtime.engine.url.dialect == "sqlite"

    def filled():
        place = saver.put(at(), new_checkpoint({"a": 1}), {}, {"a": "1"})
        for task in range(20):
            saver.put_writes(place, [(f"channel {n}", random.randbytes(100)) for n in range(50)], f"task {task}")
        return raw.value("PRAGMA page_count" if sqlite else "SELECT pg_total_relation_size('rp_writes')")

    def vacuumed():  # as autovacuum does, some time later; somebody's snapshot may need the rows for a moment still
        raw.rows("VACUUM rp_writes")
        return raw.value("SELECT n_dead_tup FROM pg_stat_all_tables WHERE relname = 'rp_writes'") == 0

    sizes = []
    for _ in range(4):
        sizes.append(filled())
        saver.delete_thread("t")
        if not sqlite:
            wait_until(vacuumed, "the deleted rows are gone")
    assert max(sizes) <= sizes[0] * 1.5, f"four times the rows, once the space (half-full index pages apart): {sizes}"
    if sqlite:
        assert raw.value("PRAGMA freelist_count") > sizes[0] / 2, "most of the file is free"
