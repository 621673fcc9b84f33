"""Several questions in one node: each answer answers its own question, also when workers die in between (pain C1)."""

import pytest
from langgraph.types import Command, interrupt

from runtime_persist.worker import Worker
from tests.support.graphs import chain, config, nested, resume


def asks_thrice(_):
    return {"log": [interrupt(n) for n in range(3)]}


GRAPHS = {
    "in a node": lambda: chain({"ask": asks_thrice}),
    "in a subgraph": lambda: nested(chain({"ask": asks_thrice})),
    "in a stateful subgraph": lambda: nested(chain({"ask": asks_thrice}, checkpointer=True)),
}
by_graph = pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)


def answers(output):
    return [entry for entry in output["log"] if entry not in {"before", "after"}]


@by_graph
async def test_each_answer_answers_its_own_question(runtime, way, make):
    graph = runtime.bind(make(), name="g")
    output = await way(graph, "invoke", {"log": []}, config())
    for n, answer in enumerate("abc"):
        (asked,) = output["__interrupt__"]
        assert asked.value == n
        output = await way(graph, "invoke", resume(answer), config())
    assert answers(output)[-3:] == ["a", "b", "c"]


@by_graph
async def test_equal_answers_in_a_row_count_each(runtime, way, make):
    graph = runtime.bind(make(), name="g")
    output = await way(graph, "invoke", {"log": []}, config())
    for n in range(3):
        assert output["__interrupt__"][0].value == n
        output = await way(graph, "invoke", resume("same"), config())
    assert answers(output)[-3:] == ["same"] * 3


@by_graph
async def test_answers_through_workers(runtime, way, make):
    graphs = {"g": make()}
    Worker(runtime, graphs).run(until_idle=True)
    run = await way(runtime.runs, "start", "g", {"log": []}, thread_id="t")
    for n, answer in enumerate("abc"):
        _work(runtime, graphs)
        question = await way(runtime.runs, "question", run.run_id)
        assert [one["value"] for one in question["interrupts"]] == [n]
        assert await way(runtime.runs, "answer", run.run_id, resume(answer)) == "queued"
    _work(runtime, graphs)
    assert answers(await way(run, "result", timeout=0))[-3:] == ["a", "b", "c"]


def _work(runtime, graphs):
    import threading

    thread = threading.Thread(target=Worker(runtime, graphs).run, kwargs={"until_idle": True})
    thread.start()
    thread.join()


@by_graph
async def test_continuing_without_an_answer_asks_the_same_again(runtime, way, make):
    """LangGraph gives the next question the answer of the last one when it is invoked with None."""
    graph = runtime.bind(make(), name="g")
    await way(graph, "invoke", {"log": []}, config())
    await way(graph, "invoke", resume("a"), config())
    for _ in range(2):
        output = await way(graph, "invoke", None, config())
        assert output["__interrupt__"][0].value == 1
    await way(graph, "invoke", resume("b"), config())
    output = await way(graph, "invoke", resume("c"), config())
    assert answers(output)[-3:] == ["a", "b", "c"]


@by_graph
async def test_a_takeover_after_the_second_question_asks_it_again(runtime, way, raw, make):
    """The worker stored the second question, and died before it could leave the run waiting."""
    graph = runtime.bind(make(), name="g")
    await way(graph, "invoke", {"log": []}, config())
    before = raw.one("SELECT epoch, answer FROM rp_runs")
    await way(graph, "invoke", resume("a"), config())
    kept = raw.rows("SELECT attempt_id FROM rp_attempts ORDER BY attempt_no")[-1]["attempt_id"]
    raw.rows(
        "UPDATE rp_attempts SET status = 'running', ended_us = NULL, termination_reason = NULL WHERE attempt_id = ?",
        kept,
    )
    raw.rows(
        "UPDATE rp_runs SET status = 'running', phase = 'active', question = NULL, expires_us = 1, attempt_id = ?", kept
    )
    output = await way(graph, "invoke", None, config())
    assert output["__interrupt__"][0].value == 1
    assert raw.value("SELECT epoch FROM rp_runs") == before["epoch"] + 2
    await way(graph, "invoke", resume("b"), config())
    output = await way(graph, "invoke", resume("c"), config())
    assert answers(output)[-3:] == ["a", "b", "c"]


async def test_an_answer_can_name_its_question(runtime, way):
    graph = runtime.bind(chain({"a": lambda _: {"log": [interrupt("q")]}}), name="g")
    output = await way(graph, "invoke", {"log": []}, config())
    asked = output["__interrupt__"][0].id
    output = await way(graph, "invoke", Command(resume={asked: "named"}), config())
    assert output["log"] == ["named"]
