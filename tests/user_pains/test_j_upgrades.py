"""Threads of every earlier schema go on under the code of the day (J1). Imports are shown in tests/importing/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langgraph.types import Command

from runtime_persist import Runtime
from runtime_persist.schema import migrate
from tests.support.checkpoints import at
from tests.user_pains import earlier_stories as stories


@pytest.fixture(params=stories.versions())
def upgraded(request, empty_url, opened):
    """A runtime on a database with the rows that a schema version left behind, on each database."""
    stories.database(empty_url, request.param, request.param)
    stories.CHARGED.clear()
    return opened(Runtime.open(empty_url))


def bound(runtime, name):
    return runtime.bind(stories.GRAPHS[name](), name=name)


def config(thread_id):
    return {"configurable": {"thread_id": thread_id}}


def test_j1_there_are_rows_of_every_schema_version_in_every_table_that_a_thread_uses():
    folder = Path(migrate.__file__).with_name("migrations") / "versions"
    made = {".".join(path.stem.removeprefix("v").split("_")[:2]) for path in folder.glob("v*.py")}
    assert made == set(stories.versions()), "an earlier version without its rows: see earlier_stories"
    for version in stories.versions():
        rows = json.loads(stories.rows_of(version))
        needed = {"rp_checkpoints", "rp_writes", "rp_heads", "rp_blobs", "rp_runs", "rp_attempts", "rp_operations"}
        assert all(rows[table] for table in needed)


async def test_j1_threads_of_an_earlier_schema_are_read_answered_and_go_on(upgraded, way):
    """State and history as they were; a journalled call is not made again; queued Sends run."""
    for name in stories.GRAPHS:
        graph = bound(upgraded, name)
        state = await way(graph, "get_state", config(name))
        assert state.values["messages"] == stories.GIVEN["messages"]
        history = await way.all(graph, "get_state_history", config(name))
        assert history[0].config == state.config
        assert [one.parent_config for one in history[:-1]] == [one.config for one in history[1:]]
    (done, *earlier) = await way.all(upgraded.checkpointer, "list", at("done"), filter={"tenant": "acme"})
    assert done.checkpoint["channel_values"]["big"] == stories.BIG
    assert done.checkpoint["channel_values"]["log"] == ["a"]
    assert len(earlier) == 2
    assert (await way(upgraded.checkpointer, "get_tuple", at("done"))).checkpoint == done.checkpoint

    found = await way(bound(upgraded, "paying"), "invoke", Command(resume="yes"), config("paying"))
    assert found["log"] == ["charged order 7", "yes", "after"]
    assert found["messages"][-1].content == "charged order 7, yes"
    found = await way(bound(upgraded, "nested"), "invoke", Command(resume="yes"), config("nested"))
    assert found["log"][-2:] == ["charged order 7", "yes"]
    assert stories.CHARGED == []

    graph = bound(upgraded, "sending")
    assert (await way(graph, "get_state", config("sending"))).next == ("work", "work", "work")
    found = await way(graph, "invoke", None, config("sending"))
    assert found["log"] == ["did 1", "did 2", "did 3", "joined"]
    assert {run.status for run in upgraded.runs.list() if run.thread_id in stories.GRAPHS} == {"succeeded"}
