"""Rows C2 and C4: an agent's tools beside one that asks a person, and an agent that is killed before its tools ran."""

import json

import pytest
from langchain_core.messages import AIMessage

from tests.fixtures.raw import wait_until
from tests.middleware import programs
from tests.middleware.agents import PAYS
from tests.soak.programs import Outside
from tests.support.graphs import config, resume
from tests.support.leases import run_out


@pytest.fixture
def outside(tmp_path):
    return Outside(tmp_path / "outside")


def tools_of(output):
    return [(m.tool_call_id, m.text) for m in output["messages"] if m.type == "tool"]


async def test_c2_a_tool_beside_one_that_asks_a_person_acts_once_and_keeps_its_message(
    runtime, shared_url, way, fork, outside, raw
):
    fork(programs.asks, shared_url, str(outside.path), way.asynchronous).result()
    graph = runtime.bind(programs.asking(outside), name="agent")
    output = await way(graph, "invoke", resume("yes"), config())
    assert tools_of(output) == [("call-a", "paid a"), ("call-b", "b: yes")]
    (paid,) = outside.lines()
    assert paid[:2] == ["pay", "a"]
    assert raw.value("SELECT idempotency_key FROM rp_operations WHERE name = 'pay'") == paid[2]


async def test_c4_killed_between_a_models_tool_calls_and_their_answers_the_thread_lives_on(
    runtime, shared_url, way, fork, outside, raw
):
    """Going on runs the tools once, behind the message that asked for them; then a new message is answered."""
    child = fork(programs.caller, shared_url, str(outside.path), ["between2"], way.asynchronous, {})
    child.until("at")
    succeeded = "SELECT count(*) FROM rp_operations WHERE status = 'succeeded'"
    wait_until(lambda: raw.value(succeeded) == 1, "the model's answer is stored")
    child.kill()
    run_out(raw)
    graph = runtime.bind(programs.paying(outside, script=(*PAYS, AIMessage(content="you are welcome"))), name="agent")
    await way(graph, "invoke", None, config())
    output = await way(graph, "invoke", {"messages": [{"role": "user", "content": "thanks"}]}, config())
    assert [message.type for message in output["messages"]] == ["human", "ai", "tool", "tool", "ai", "human", "ai"]
    assert tools_of(output) == [("call-a", "paid a"), ("call-b", "paid b")]
    counted = programs.counted(outside)
    assert (counted["pay-a"], counted["pay-b"], counted["model0"]) == (1, 1, 1)


def test_c4_who_skips_the_recovery_is_shown_the_call_that_nobody_answered(
    runtime, shared_url, fork, outside, raw, cli, tmp_path
):
    """First its tools come next; once another message has come, it dangles, and models refuse the thread."""
    child = fork(programs.caller, shared_url, str(outside.path), ["between2"], False, {})
    child.until("at")

    def left():
        shown = cli("thread", "calls", "t", "--json")
        calls = json.loads(shown.stdout) if shown.exit_code == 0 else []
        return [(one["tool_call_id"], one["name"], one["dangling"]) for one in calls]

    wait_until(lambda: left() != [], "the model's message is stored in the thread")
    child.kill()
    run_out(raw)
    assert left() == [("call-a", "pay", False), ("call-b", "pay", False)]
    script = (*PAYS[:1], AIMessage(content="you are welcome"))
    graph = runtime.bind(programs.paying(outside, script=script), name="agent")
    graph.invoke({"messages": [{"role": "user", "content": "thanks"}]}, config())
    for asked in ((), ("--bundle", exported(cli, runtime, tmp_path))):
        dangling = json.loads(cli("thread", "calls", "t", "--json", *asked).stdout)
        assert [one["dangling"] for one in dangling] == [True, True]
    assert "dangling" in cli("thread", "calls", "t").stdout
    assert programs.counted(outside)["pay-a"] == 0


def exported(cli, runtime, tmp_path):
    file = str(tmp_path / "run.bundle")
    assert cli("bundle", "export", runtime.runs.list(thread_id="t")[0].run_id, file).exit_code == 0
    return file


def test_c4_an_answered_call_is_not_listed(runtime, outside, cli):
    graph = runtime.bind(programs.paying(outside), name="agent")
    graph.invoke({"messages": [{"role": "user", "content": "pay"}]}, config())
    assert json.loads(cli("thread", "calls", "t", "--json").stdout) == []
