"""Traces: one for each run, over its start, its attempts and its operations, and over processes and takeovers."""

import asyncio
import signal

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from runtime_persist.errors import LeaseExpired, OperationUnknown
from tests.fixtures.fix_engine import FILE, POSTGRES
from tests.support import programs_telemetry as programs
from tests.support.graphs import asks, chain, config, fails, resume, says
from tests.support.journal import Outside
from tests.support.leases import run_out


def fact(span, name):
    return span.attributes.get(f"runtime_persist.{name}")


@pytest.fixture
def caller(told):
    """The span of whoever uses the package."""
    return told.tracers.get_tracer("the user's own")


async def test_an_owned_call_is_one_trace_from_its_caller_to_its_operations(told, runtime, way, caller):
    charge = Outside().charge()
    durable = runtime.bind(chain({"node": lambda _: {"log": [charge("a")["receipt"]]}}), name="g")
    with caller.start_as_current_span("caller") as outer:
        await way(durable, "invoke", {"log": []}, config("t"))
    (start,), (attempt,), (charged,) = (told.spans(name) for name in ("run start", "run attempt", "operation charge"))
    assert start.parent.span_id == outer.get_span_context().span_id
    assert attempt.parent.span_id == start.context.span_id
    assert charged.parent.span_id == attempt.context.span_id
    (record,) = runtime.runs.list()
    assert (fact(attempt, "run_id"), fact(attempt, "thread_id")) == (record.run_id, "t")
    assert (fact(attempt, "epoch"), fact(attempt, "graph"), fact(attempt, "run_status")) == (1, "g", "succeeded")
    assert fact(charged, "try_no") == 1


async def test_a_worker_goes_on_with_the_trace_of_the_start(told, runtime, way, works, caller):
    graphs = {"g": chain({"node": says("x")})}
    runtime.bind(graphs["g"], name="g")
    with caller.start_as_current_span("caller") as outer:
        await way(runtime.runs, "start", "g", {"log": []})
    works(graphs)
    (start,), (attempt,) = told.spans("run start"), told.spans("run attempt")
    assert attempt.context.trace_id == start.context.trace_id == outer.get_span_context().trace_id


async def test_a_run_started_outside_of_any_trace_has_one_of_its_own(told, runtime, works, way):
    graphs = {"ask": chain({"node": asks("why?")})}
    runtime.bind(graphs["ask"], name="ask")
    run = await way(runtime.runs, "start", "ask", {"log": []})
    works(graphs)
    await way(runtime.runs, "answer", run.run_id, resume("because"))
    works(graphs)
    (start,) = told.spans("run start")
    attempts = told.spans("run attempt")
    assert [fact(span, "run_status") for span in attempts] == ["waiting_approval", "succeeded"]
    assert {span.parent.span_id for span in attempts} == {start.context.span_id}
    assert [span.status.status_code for span in attempts] == [StatusCode.UNSET] * 2


async def test_a_failed_attempt_says_its_code_and_no_text(told, runtime, way):
    broken = runtime.bind(chain({"node": fails(ValueError("the customer's secret"))}), name="g")
    with pytest.raises(ValueError, match="secret"):
        await way(broken, "invoke", {"log": []}, config())
    (attempt,) = told.spans("run attempt")
    assert attempt.status.status_code is StatusCode.ERROR
    assert (attempt.attributes["error.type"], fact(attempt, "run_status")) == ("ValueError", "failed")
    assert "secret" not in attempt.to_json()


async def test_arguments_and_results_of_operations_are_in_no_span(told, runtime, way):
    charge = Outside().charge()
    durable = runtime.bind(chain({"node": lambda _: {"log": [charge("hunter2")["receipt"]]}}), name="g")
    await way(durable, "invoke", {"log": ["hunter2"]}, config())
    for name in ("run start", "run attempt", "operation charge"):
        assert "hunter2" not in "".join(span.to_json() for span in told.spans(name))


async def test_a_stream_leaves_its_caller_in_his_own_span(told, runtime, way, caller):
    inside = []
    nodes = {"a": lambda _: inside.append(trace.get_current_span()) or {"log": ["a"]}, "b": says("b")}
    durable = runtime.bind(chain(nodes), name="g")
    with caller.start_as_current_span("caller") as outer:
        if way.asynchronous:
            async for _ in durable.astream({"log": []}, config()):
                assert trace.get_current_span() is outer
        else:
            for _ in durable.stream({"log": []}, config()):
                assert trace.get_current_span() is outer
    (attempt,) = told.spans("run attempt")
    assert inside[0].get_span_context().span_id == attempt.context.span_id


async def test_a_stream_that_is_closed_early_ends_its_span(told, runtime, way):
    durable = runtime.bind(chain({"a": says("a"), "b": says("b")}), name="g")
    await way.first(durable, "stream", {"log": []}, config())
    (attempt,) = told.spans("run attempt")
    assert fact(attempt, "run_status") == "cancelled"


async def test_many_inputs_at_once_are_a_trace_each(told, runtime, way):
    durable = runtime.bind(chain({"a": says("a")}), name="g")
    await way(durable, "batch", [{"log": []}] * 3, [config(f"t{n}") for n in range(3)])
    attempts = told.spans("run attempt")
    assert len({span.context.trace_id for span in attempts}) == len(attempts) == 3


async def test_a_lost_lease_ends_its_attempt_with_that_and_the_next_one_is_in_the_same_trace(told, runtime, way, raw):
    class Losing(Outside):
        def call(self, what, idempotency_key):
            run_out(raw)
            return super().call(what, idempotency_key)

    charge = Losing().charge()
    durable = runtime.bind(chain({"node": lambda _: {"log": [charge("a")]}}), name="g")
    with pytest.raises(LeaseExpired):
        await way(durable, "invoke", {"log": []}, config())
    with pytest.raises(OperationUnknown):
        await way(durable, "invoke", None, config())
    first, second = told.spans("run attempt")
    assert first.context.trace_id == second.context.trace_id
    assert (first.attributes["error.type"], fact(first, "run_status")) == ("LEASE_EXPIRED", None)
    assert (fact(second, "run_status"), second.status.status_code) == ("waiting_approval", StatusCode.UNSET)


@pytest.mark.parametrize("shared_url", [FILE, POSTGRES], indirect=True)
def test_a_trace_goes_on_over_a_kill_in_another_process(told, runtime, shared_url, fork, raw):
    runtime.bind(chain({"node": says("x")}), name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    first = fork(programs.traced_worker, shared_url)
    first.until("in node")
    first.kill()
    run_out(raw)
    second = fork(programs.traced_worker, shared_url)
    second.until("in node")
    second.give_the_word("second")
    assert run.result(timeout=30)["log"] == ["second"]
    second.send(signal.SIGTERM)
    (start,) = told.spans("run start")
    (attempt,) = second.result()
    assert attempt == {
        "trace_id": start.context.trace_id,
        "parent_id": start.context.span_id,
        "epoch": 2,
        "run_status": "succeeded",
    }


@pytest.mark.parametrize("told", [{"command_spans": True}], indirect=True)
def test_commands_are_spans_when_that_is_asked_for(told, runtime):
    durable = runtime.bind(chain({"node": says("x")}), name="g")
    asyncio.run(durable.ainvoke({"log": []}, config()))
    (started,) = told.spans("command start_owned_run")
    (put, *_) = told.spans("command commit_workflow_checkpoint")
    assert {fact(span, "result") for span in (started, put)} == {"committed"}
    (attempt,) = told.spans("run attempt")
    assert put.parent.span_id == attempt.context.span_id


def test_without_asking_there_are_no_spans_of_commands(told, runtime):
    runtime.bind(chain({"node": says("x")}), name="g").invoke({"log": []}, config())
    assert told.spans("command start_owned_run") == []
