"""What a run asks and what it is told: several questions at once, wrong ones, second answers, and crashes."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from runtime_persist import operation
from runtime_persist.errors import (
    AlreadyAnswered,
    IdempotencyMismatch,
    IllegalTransition,
    InvalidInput,
    OperationNotFound,
    QuestionNotFound,
    RunNotFound,
)
from runtime_persist.model.questions import QuestionKind
from tests.fixtures.raw import wait_until
from tests.support.graphs import State, asks, chain, config, nested, says
from tests.support.leases import run_out


def asking(*questions, **options):
    """A graph whose nodes ask at the same time."""
    builder = StateGraph(State)
    for question in questions:
        builder.add_node(question, lambda _, question=question: {"log": [(question, interrupt(question))]})
        builder.add_edge(START, question)
    return builder.compile(**options)


async def ids(way, run):
    found = await way(run._runs, "questions", run.run_id)
    return {one.value: one.interrupt_id for one in found}


async def test_a_question_says_what_an_answer_to_it_is(runtime, way, works, start):
    graphs = {"g": chain({"ask": asks({"amount": 5})})}
    run = await start(graphs, "g", thread_id="t")
    assert await way(runtime.runs, "questions", run.run_id) == []
    works(graphs)
    (question,) = await way(runtime.runs, "questions", run.run_id)
    assert (question.kind, question.value, question.next) == (QuestionKind.INTERRUPT, {"amount": 5}, ("ask",))
    assert question.run_id == run.run_id
    assert question.asked_us >= (await way(run, "record")).created_us


async def test_one_question_is_answered_with_a_value(runtime, way, works, start):
    graphs = {"g": chain({"ask": asks("why?"), "next": says("x")})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    assert await way(runtime.runs, "resume", run.run_id, {"an": "object"}) == "queued"
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [{"an": "object"}, "x"]


async def test_a_run_that_its_caller_left_waiting_is_answered_by_anybody_and_goes_on_with_a_worker(runtime, way, works):
    graphs = {"g": chain({"ask": asks("why?"), "next": says("x")})}
    await way(runtime.bind(graphs["g"], name="g"), "invoke", {"log": []}, config())
    (record,) = await way(runtime.runs, "list")
    run = runtime.runs.handle(record.run_id)
    assert [one.value for one in await way(run, "questions")] == ["why?"]
    assert await way(run, "resume", "because", by="ann") == "queued"
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == ["because", "x"]


async def test_several_questions_are_answered_by_their_ids_all_at_once_or_some_first(runtime, way, works, start):
    graphs = {"g": asking("a", "b", "c")}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    asked = await ids(way, run)
    await way(runtime.runs, "resume", run.run_id, {asked["b"]: 2})
    works(graphs)
    assert await ids(way, run) == {name: asked[name] for name in "ac"}
    await way(runtime.runs, "resume", run.run_id, {asked["a"]: 1, asked["c"]: None})
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [("a", 1), ("b", 2), ("c", None)]


async def test_an_answer_that_does_not_say_which_question_it_is_for_is_refused(runtime, way, works, start, raw):
    graphs = {"g": asking("a", "b")}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    before = raw.dump()
    with pytest.raises(InvalidInput) as caught:
        await way(runtime.runs, "resume", run.run_id, "yes")
    assert sorted(caught.value.details["asked"]) == sorted((await ids(way, run)).values())
    asked = (await ids(way, run))["a"]
    for wrong in ({"0" * 32: 1}, {asked: 1, "else": 2}):
        with pytest.raises(QuestionNotFound) as refused:
            await way(runtime.runs, "resume", run.run_id, wrong)
        assert refused.value.details["interrupt_ids"] == [name for name in wrong if name != asked]
    assert raw.dump() == before


async def test_a_question_needs_a_value_and_none_is_one_when_it_is_named(runtime, way, works, start):
    graphs = {"g": chain({"ask": asks("why?")})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    with pytest.raises(InvalidInput, match="to answer None"):
        await way(runtime.runs, "resume", run.run_id)
    await way(runtime.runs, "resume", run.run_id, {(await ids(way, run))["why?"]: None})
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [None]


async def test_a_second_answer_is_told_when_and_by_whom_the_question_was_answered(runtime, way, works, start, raw):
    graphs = {"g": chain({"ask": asks("first?"), "more": asks("second?")})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    (question,) = await way(runtime.runs, "questions", run.run_id)
    await way(runtime.runs, "resume", run.run_id, 1, by="ann")
    at = raw.value("SELECT created_us FROM rp_events WHERE type = 'run.answered'")

    async def late(**options):
        with pytest.raises(AlreadyAnswered, match="user:ann") as caught:
            await way(runtime.runs, "resume", run.run_id, options.pop("value", 2), **options)
        assert (caught.value.details["answered_by"], caught.value.details["answered_us"]) == ("user:ann", at)

    await late()
    await late(value={question.interrupt_id: 2})
    works(graphs)  # it asks the next question now
    await late(value={question.interrupt_id: 2})
    await late(question_id=question.question_id)
    (second,) = await way(runtime.runs, "questions", run.run_id)
    assert second.question_id != question.question_id
    await way(runtime.runs, "resume", run.run_id, 2, question_id=second.question_id)
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [1, 2]


async def test_the_same_answer_delivered_again_is_one_answer_whatever_is_asked_by_now(runtime, way, works, start, raw):
    graphs = {"g": chain({"ask": asks("first?"), "more": asks("second?")})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    for _ in range(2):
        assert await way(runtime.runs, "resume", run.run_id, "yes", idempotency_key="k") == "queued"
    works(graphs)
    before = raw.dump()
    assert await way(runtime.runs, "resume", run.run_id, "yes", idempotency_key="k") == "queued"
    with pytest.raises(IdempotencyMismatch, match="'k'"):
        await way(runtime.runs, "resume", run.run_id, "no", idempotency_key="k")
    assert raw.dump() == before
    assert list(await ids(way, run)) == ["second?"]


def test_of_two_who_answer_at_once_one_is_told_so(runtime, open_runtime, works):
    graphs = {"g": chain({"ask": asks("why?")})}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    works(graphs)
    runtimes = [runtime, open_runtime()]

    def answer(n):
        try:
            return runtimes[n % 2].runs.resume(run.run_id, n, by=str(n))
        except AlreadyAnswered as error:
            return error.details["answered_by"]

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(answer, range(4)))
    works(graphs)
    (winner,) = run.result(timeout=0)["log"]
    assert [what for what in said if what != "queued"] == [f"user:{winner}"] * 3


async def test_a_run_that_asks_nothing_is_no_place_for_an_answer(runtime, way, start):
    run = await start({"g": chain({"node": says("x")})}, "g", thread_id="t")
    with pytest.raises(IllegalTransition, match="waits for no answer"):
        await way(runtime.runs, "resume", run.run_id, 1)
    with pytest.raises(RunNotFound):
        await way(runtime.runs, "resume", "nobody", 1)
    for bad in ({"by": ""}, {"idempotency_key": ""}):
        with pytest.raises(InvalidInput):
            await way(runtime.runs, "resume", run.run_id, 1, **bad)


async def test_a_breakpoint_asks_nothing_and_is_resumed_without_a_value(runtime, way, works, start):
    graphs = {"g": chain({"one": says("x"), "two": says("y")}, interrupt_before=["two"])}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    (question,) = await way(runtime.runs, "questions", run.run_id)
    assert (question.kind, question.next, question.interrupt_id) == (QuestionKind.BREAKPOINT, ("two",), None)
    with pytest.raises(QuestionNotFound, match="two"):
        await way(runtime.runs, "resume", run.run_id, "go")
    await way(runtime.runs, "resume", run.run_id)
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == ["x", "y"]


async def test_what_became_of_an_operation_is_said_and_not_answered(runtime, way, works, start, raw):
    tries = []

    @operation(name="pay", on_unknown="ask")
    def pay(*, idempotency_key):
        tries.append(idempotency_key)
        run_out(raw)  # the worker loses its lease in the middle of the call
        return "paid"

    graphs = {"g": chain({"pay": lambda _: {"log": [pay()]}})}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    works(graphs)
    (question,) = await way(runtime.runs, "questions", run.run_id)
    assert (question.kind, question.operation["name"]) == (QuestionKind.UNKNOWN_OPERATION, "pay")
    with pytest.raises(QuestionNotFound, match="resolve"):
        await way(runtime.runs, "resume", run.run_id, "paid")
    said = {"happened": True, "result": "paid", "by": "ann"}
    assert await way(runtime.runs, "resolve", question.operation_id, **said) == "queued"
    with pytest.raises(AlreadyAnswered, match="user:ann"):
        await way(runtime.runs, "resolve", question.operation_id, **said)
    with pytest.raises(OperationNotFound):
        await way(runtime.runs, "resolve", "none", happened=False)
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == ["paid"]
    assert len(tries) == 1


@pytest.mark.parametrize("around", [lambda graph: graph, nested], ids=["flat", "nested"])
async def test_answers_that_no_task_had_taken_up_when_the_process_died_are_given_again(way, works, start, raw, around):
    """Each answer reaches its own question once, and nothing is asked a second time."""
    entered = []

    def late(_):
        entered.append(1)
        if len(entered) == 2:  # resumed: its worker dies before it has its answer, and the other node has its own
            wait_until(lambda: raw.rows("SELECT 1 FROM rp_writes WHERE channel = '__resume__'"), "an answer taken up")
            run_out(raw)
        return {"log": [("late", interrupt("late"))]}

    builder = StateGraph(State).add_node("early", lambda _: {"log": [("early", interrupt("early"))]})
    builder = builder.add_node("late", late).add_edge(START, "early").add_edge(START, "late")
    graphs = {"g": around(builder.compile())}
    run = await start(graphs, "g", thread_id="t")
    works(graphs)
    asked = await ids(way, run)
    await way(run._runs, "resume", run.run_id, {asked["early"]: 1, asked["late"]: 2})
    works(graphs)
    works(graphs)
    assert await ids(way, run) == {}
    log = (await way(run, "result", timeout=0))["log"]
    assert [one for one in log if isinstance(one, tuple)] == [("early", 1), ("late", 2)]
    assert (await way(run, "record")).takeovers == 1
