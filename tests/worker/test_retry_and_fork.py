"""A person's retry is a new run that goes on, or begins anew; a fork is a new run in a new thread."""

import pytest
from langgraph.types import Command, interrupt

from runtime_persist import operation
from runtime_persist.errors import (
    CheckpointNotFound,
    IdempotencyMismatch,
    InvalidInput,
    InvalidThreadId,
    RunNotFound,
    ThreadMovedOn,
    ThreadNotEmpty,
)
from tests.support.graphs import asks, chain, config, nested, says


@pytest.fixture
def flaky():
    """A graph that charges, asks, and then fails until it is told not to; what was charged."""
    charged, broken = [], [True]

    @operation(name="charge")
    def charge(cents, *, idempotency_key):
        charged.append(cents)
        return cents

    def fails(_):
        if broken:
            raise ValueError("no luck")
        return {"log": ["ok"]}

    nodes = {"charge": lambda _: {"log": [charge(5)]}, "ask": asks("why?"), "fails": fails}
    return {"g": chain(nodes)}, charged, broken


@pytest.fixture
def failed(way, works, start, flaky):
    """A run that charged, was answered, and failed."""

    async def ended():
        run = await start(flaky[0], "g", {"log": ["in"]}, thread_id="t")
        works(flaky[0])
        await way(run._runs, "resume", run.run_id, "because")
        works(flaky[0])
        assert (await way(run, "record")).status == "failed"
        return run

    return ended


async def test_a_retry_goes_on_where_the_run_stopped(runtime, way, works, failed, flaky):
    graphs, charged, broken = flaky
    run = await failed()
    broken.clear()
    again = await way(runtime.runs, "retry", run.run_id)
    works(graphs)
    assert (await way(again, "result", timeout=0))["log"] == ["in", 5, "because", "ok"]
    record = await way(again, "record")
    assert (record.retry_of_run_id, record.thread_id, charged) == (run.run_id, "t", [5])
    assert (await way(run, "record")).status == "failed"


async def test_a_retry_from_the_start_begins_where_the_run_began(runtime, way, works, failed, flaky):
    graphs, charged, broken = flaky
    run = await failed()
    broken.clear()
    again = await way(runtime.runs, "retry", run.run_id, from_start=True)
    works(graphs)
    await way(runtime.runs, "resume", again.run_id, "otherwise")
    works(graphs)
    assert (await way(again, "result", timeout=0))["log"] == ["in", 5, "otherwise", "ok"]
    assert charged == [5, 5]  # another task's call
    history = list(runtime.checkpointer.list(config("t")))
    assert [one.parent_config for one in history if one.metadata["step"] == -1] == [None, None]


async def test_a_retry_from_the_start_of_a_later_turn_keeps_the_turns_before_it(runtime, way, works, start):
    broken = [True]

    def node(_):
        if broken:
            raise ValueError("no luck")
        return {"log": ["ok"]}

    graphs = {"good": chain({"node": says("x")}), "g": chain({"one": says("y"), "node": node})}
    await start(graphs, "good", {"log": [1]}, thread_id="t")
    run = await start(graphs, "g", {"log": [2]}, thread_id="t")
    works(graphs)
    broken.clear()
    again = await way(runtime.runs, "retry", run.run_id, from_start=True)
    works(graphs)
    assert (await way(again, "result", timeout=0))["log"] == [1, "x", 2, "y", "ok"]


async def test_a_run_is_retried_once_and_the_same_key_is_the_same_retry(runtime, way, failed):
    run = await failed()
    again = await way(runtime.runs, "retry", run.run_id, idempotency_key="k")
    assert (await way(runtime.runs, "retry", run.run_id, idempotency_key="k")).run_id == again.run_id
    with pytest.raises(ThreadMovedOn) as caught:
        await way(runtime.runs, "retry", run.run_id)
    assert caught.value.details["later_run_id"] == again.run_id
    with pytest.raises(IdempotencyMismatch):
        await way(runtime.runs, "retry", run.run_id, from_start=True, idempotency_key="k")
    with pytest.raises(IdempotencyMismatch):
        await way(runtime.runs, "start", "g", {}, idempotency_key="k")
    with pytest.raises(RunNotFound):
        await way(runtime.runs, "retry", "nobody")


async def test_a_run_that_was_cancelled_while_it_asked_asks_again_when_it_is_retried(runtime, way, works, start):
    graphs = {"g": chain({"ask": asks("why?")})}
    run = await start(graphs, "g", {"log": []}, thread_id="t")
    works(graphs)
    await way(run, "cancel")
    again = await way(runtime.runs, "retry", run.run_id)
    works(graphs)
    assert [one.value for one in await way(runtime.runs, "questions", again.run_id)] == ["why?"]
    await way(runtime.runs, "resume", again.run_id, "because")
    works(graphs)
    assert (await way(again, "result", timeout=0))["log"] == ["because"]


async def test_a_run_that_never_began_is_retried_with_its_input(runtime, way, works, start):
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g", {"log": ["in"]}, thread_id="t")
    await way(run, "cancel")
    again = await way(runtime.runs, "retry", run.run_id)
    works(graphs)
    assert (await way(again, "result", timeout=0))["log"] == ["in", "x"]


@pytest.mark.parametrize("around", [lambda graph: graph, nested], ids=["flat", "nested"])
@pytest.mark.parametrize("retries", [1, 2])
async def test_an_answer_that_was_taken_up_before_the_failure_answers_no_other_question(
    runtime, way, works, start, around, retries
):
    """A node asks twice and fails in between; its retry has the first answer, and asks the second question."""
    fails = [True]

    def node(_):
        first = interrupt("first?")
        if fails:
            raise ValueError("no luck")
        return {"log": [first, interrupt("second?")]}

    graphs = {"g": around(chain({"ask": node}))}
    run = await start(graphs, "g", {"log": []}, thread_id="t")
    works(graphs)
    await way(runtime.runs, "answer", run.run_id, Command(resume="a"))
    works(graphs)
    for _ in range(retries - 1):
        run = await way(runtime.runs, "retry", run.run_id)
        works(graphs)
        assert (await way(run, "record")).status == "failed"
    fails.clear()
    run = await way(runtime.runs, "retry", run.run_id)
    works(graphs)
    assert [one.value for one in await way(runtime.runs, "questions", run.run_id)] == ["second?"]
    await way(runtime.runs, "resume", run.run_id, "b")
    works(graphs)
    assert [one for one in (await way(run, "result", timeout=0))["log"] if one in {"a", "b"}][-2:] == ["a", "b"]


@pytest.mark.parametrize("around", [lambda graph: graph, nested], ids=["flat", "nested"])
async def test_an_owned_call_that_continues_after_a_failure_does_not_reuse_an_answer_either(runtime, way, around):
    fails = [True]

    def node(_):
        first = interrupt("first?")
        if fails:
            raise ValueError("no luck")
        return {"log": [first, interrupt("second?")]}

    graph = runtime.bind(around(chain({"ask": node})), name="g")
    await way(graph, "invoke", {"log": []}, config())
    with pytest.raises(ValueError, match="no luck"):
        await way(graph, "invoke", Command(resume="a"), config())
    fails.clear()
    output = await way(graph, "invoke", None, config())
    assert [one.value for one in output["__interrupt__"]] == ["second?"]


# --- beginning at a checkpoint ----------------------------------------------------------------------------------------


def at_step(runtime, step, thread_id="t"):
    (found,) = (one for one in runtime.checkpointer.list(config(thread_id)) if one.metadata["step"] == step)
    return found.checkpoint["id"]


async def test_a_run_begins_at_an_old_checkpoint_of_its_thread(runtime, way, works, start):
    graphs = {"g": chain({"one": says("x"), "two": says("y")})}
    await start(graphs, "g", {"log": [1]}, thread_id="t")
    works(graphs)
    with pytest.raises(InvalidInput, match="thread_id"):
        await way(runtime.runs, "start", "g", None, checkpoint_id="c")
    with pytest.raises(CheckpointNotFound):
        await way(runtime.runs, "start", "g", None, thread_id="t", checkpoint_id="none")
    begins = at_step(runtime, 0)
    replay = await start(graphs, "g", None, thread_id="t", checkpoint_id=begins)
    turn = await start(graphs, "g", {"log": [2]}, thread_id="t", checkpoint_id=begins)
    works(graphs)
    assert (await way(turn, "result", timeout=0))["log"] == [1, 2, "x", "y"]
    assert (await way(replay, "record")).status == "succeeded"


async def test_a_run_whose_checkpoint_was_pruned_meanwhile_fails_and_begins_nowhere_else(runtime, way, works, start):
    graphs = {"g": chain({"one": says("x"), "two": says("y")})}
    await start(graphs, "g", {"log": [1]}, thread_id="t")
    works(graphs)
    run = await start(graphs, "g", {"log": [2]}, thread_id="t", checkpoint_id=at_step(runtime, 0))
    runtime.checkpointer.prune(["t"])
    works(graphs)
    record = await way(run, "record")
    assert (record.status, record.error_code) == ("failed", "CHECKPOINT_NOT_FOUND")


# --- forks ------------------------------------------------------------------------------------------------------------


async def test_a_fork_runs_what_comes_behind_a_checkpoint_and_fires_nothing_again(runtime, way, works, failed, flaky):
    graphs, charged, broken = flaky
    run = await failed()
    broken.clear()
    before = list(runtime.checkpointer.list(config("t")))
    fork = await way(runtime.runs, "fork", run.run_id, checkpoint_id=at_step(runtime, 0), thread_id="new")
    works(graphs)
    assert charged == [5]  # the task behind the checkpoint ran again, and found what it had done
    await way(runtime.runs, "resume", fork.run_id, "otherwise")
    works(graphs)
    assert (await way(fork, "result", timeout=0))["log"] == ["in", 5, "otherwise", "ok"]
    assert list(runtime.checkpointer.list(config("t"))) == before
    assert (await way(run, "record")).status == "failed"


async def test_without_a_checkpoint_a_fork_goes_on_where_the_run_stands(runtime, way, works, start):
    graphs = {"g": nested(chain({"one": says("x"), "ask": asks("why?")}))}
    run = await start(graphs, "g", {"log": []}, thread_id="t")
    works(graphs)
    fork = await way(runtime.runs, "fork", run.run_id)
    works(graphs)
    for one, answer in ((fork, "a"), (run, "b")):
        assert [found.value for found in await way(runtime.runs, "questions", one.run_id)] == ["why?"]
        await way(runtime.runs, "resume", one.run_id, answer)
        works(graphs)
        assert answer in (await way(one, "result", timeout=0))["log"]


async def test_a_fork_answers_otherwise_or_takes_another_turn(runtime, way, works, failed, flaky):
    graphs, charged, broken = flaky
    run = await failed()
    broken.clear()
    asked = at_step(runtime, 1)
    answer = await way(runtime.runs, "fork", run.run_id, checkpoint_id=asked, input=Command(resume="otherwise"))
    turn = await way(runtime.runs, "fork", run.run_id, checkpoint_id=asked, input={"log": ["new"]})
    works(graphs)
    assert (await way(answer, "result", timeout=0))["log"] == ["in", 5, "otherwise", "ok"]
    assert (await way(turn, "record")).status == "waiting_approval"
    assert charged == [5, 5]  # the other turn charges for itself


async def test_what_cannot_be_forked_is_said_and_nothing_is_written(runtime, way, failed, raw):
    run = await failed()
    first = at_step(runtime, 0)
    fork = await way(runtime.runs, "fork", run.run_id, checkpoint_id=first, thread_id="new", idempotency_key="k")
    before = raw.dump()
    again = await way(runtime.runs, "fork", run.run_id, checkpoint_id=first, thread_id="new", idempotency_key="k")
    assert (again.run_id, again.thread_id) == (fork.run_id, "new")
    for error, options in (
        (CheckpointNotFound, {"checkpoint_id": "none"}),
        (ThreadNotEmpty, {"thread_id": "t"}),
        (ThreadNotEmpty, {"thread_id": "new"}),
        (InvalidThreadId, {"thread_id": ""}),
        (IdempotencyMismatch, {"idempotency_key": "k", "thread_id": "newer"}),
    ):
        with pytest.raises(error):
            await way(runtime.runs, "fork", run.run_id, **{"checkpoint_id": first, **options})
    with pytest.raises(RunNotFound):
        await way(runtime.runs, "fork", "nobody")
    with pytest.raises(InvalidInput, match="no checkpoint"):
        await way(runtime.runs, "fork", fork.run_id)
    assert raw.dump() == before
