"""Threads that graphs made with the stock savers, continued here (user pain J1)."""

import threading

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from runtime_persist.adapters.workflow.importing import import_threads
from runtime_persist.errors import CheckpointConflict, InvalidInput, MissingDependency, StaleWriter, ThreadDeleted
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.support.checkpoints import at
from tests.support.graphs import State, asks, chain, config, fails, fanned, nested, resume, says


def plain(found: CheckpointTuple) -> tuple:
    return (found.config, found.checkpoint, found.metadata, found.parent_config, found.pending_writes)


def made(stock, build, *calls):
    """Run a graph on the stock saver; return what its saver lists."""
    with stock.opens() as saver:
        graph = build(checkpointer=saver)
        for call in calls:
            call(graph)
        return [plain(one) for one in saver.list(None)]


def listed(saver):
    return [plain(one) for one in saver.list(None)]


def by_id(found):
    return sorted(found, key=lambda one: str(one[0]))


def asking(**options):
    return chain({"before": says("before"), "ask": asks("why?"), "after": says("after")}, **options)


def test_everything_that_the_source_lists_is_listed_here(stock, saver):
    theirs = made(
        stock,
        lambda **o: nested(chain({"inner": says("inner"), "ask": asks("why?")}), **o),
        lambda graph: graph.invoke({"log": ["x" * 30_000]}, config("a", user="u1")),
        lambda graph: graph.invoke({"log": []}, config("b")),
        lambda graph: graph.invoke(resume("because"), config("b")),
    )
    report = import_threads(saver, stock.url)
    assert (report.threads, report.failed, report.checkpoints) == (["a", "b"], {}, len(theirs))
    assert by_id(listed(saver)) == by_id(theirs)


def test_a_thread_that_waits_for_an_answer_goes_on_here(stock, saver):
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config()))
    import_threads(saver, stock.url)
    graph = asking(checkpointer=saver)
    state = graph.get_state(config())
    assert (state.next, [one.value for one in state.interrupts]) == (("ask",), ["why?"])
    assert graph.invoke(resume("because"), config())["log"] == ["before", "because", "after"]
    assert len(list(graph.get_state_history(config()))) == 5


def test_a_waiting_subgraph_goes_on_here(stock, saver):
    def build(**options):
        return nested(chain({"inner": says("inner"), "ask": asks("why?")}), **options)

    made(stock, build, lambda graph: graph.invoke({"log": []}, config()))
    import_threads(saver, stock.url)
    graph = build(checkpointer=saver)
    assert graph.invoke(resume("because"), config())["log"][-2:] == ["because", "after"]


def test_queued_sends_run_here_and_results_that_were_there_are_not_made_again(stock, saver):
    ran, stored = [], threading.Semaphore(0)

    def work(given):
        ran.append(given["item"])
        if given["item"] == 2 and len(ran) <= 3:
            for _ in range(2):  # those of the others: what comes behind an error is not stored
                assert stored.acquire(timeout=DEADLINE_SECONDS)
            raise OSError
        return {"log": [given["item"]]}

    def call(graph):
        put_writes = graph.checkpointer.put_writes

        def counted(*given):
            put_writes(*given)
            if ran:
                stored.release()

        graph.checkpointer.put_writes = counted
        with pytest.raises(OSError):
            graph.invoke({"log": [], "items": [1, 2, 3]}, config())

    made(stock, lambda **o: fanned(work, **o), call)
    import_threads(saver, stock.url)
    before = len(ran)
    graph = fanned(work, checkpointer=saver)
    assert graph.invoke(None, config())["log"] == [1, 2, 3, "joined"]
    assert ran[before:] == [2]


def test_a_failed_task_is_tried_again_here(stock, saver):
    def call(graph):
        with pytest.raises(OSError):
            graph.invoke({"log": []}, config())

    made(stock, lambda **o: chain({"first": says(1), "second": fails(OSError("no"))}, **o), call)
    import_threads(saver, stock.url)
    graph = chain({"first": says(1), "second": says(2)}, checkpointer=saver)
    assert graph.invoke(None, config())["log"] == [1, 2]


def test_a_second_import_stores_nothing(stock, saver, raw):
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config()))
    first = import_threads(saver, stock.url)
    before = {table: rows for table, rows in raw.dump().items() if table != "rp_receipts"}
    again = import_threads(saver, stock.url)
    assert (again.checkpoints, again.present, again.failed) == (0, first.checkpoints, {})
    assert {table: rows for table, rows in raw.dump().items() if table != "rp_receipts"} == before


def test_a_source_that_went_on_is_caught_up_with(stock, saver):
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config()))
    import_threads(saver, stock.url)
    theirs = made(stock, asking, lambda graph: graph.invoke(resume("because"), config()))
    assert import_threads(saver, stock.url).failed == {}
    assert by_id(listed(saver)) == by_id(theirs)
    assert asking(checkpointer=saver).get_state(config()).values["log"] == ["before", "because", "after"]


def test_a_thread_that_went_on_here_is_left_alone(stock, saver):
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config()))
    import_threads(saver, stock.url)
    graph = asking(checkpointer=saver)
    graph.invoke(resume("because"), config())
    report = import_threads(saver, stock.url)
    assert (report.threads, report.left, report.failed) == ([], ["t"], {})
    assert graph.get_state(config()).values["log"] == ["before", "because", "after"]


def test_a_thread_that_went_on_in_both_places_is_refused_and_the_others_are_imported(stock, saver):
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config("both")))
    import_threads(saver, stock.url)
    asking(checkpointer=saver).invoke(resume("here"), config("both"))
    made(
        stock,
        asking,
        lambda graph: graph.invoke(resume("there"), config("both")),
        lambda graph: graph.invoke({"log": []}, config("other")),
    )
    report = import_threads(saver, stock.url)
    assert {thread: type(error) for thread, error in report.failed.items()} == {"both": CheckpointConflict}
    assert report.threads == ["other"]
    assert "here" in asking(checkpointer=saver).get_state(config("both")).values["log"]


def test_only_the_threads_that_are_named_are_imported(stock, saver):
    made(stock, asking, *[lambda graph, t=t: graph.invoke({"log": []}, config(t)) for t in "abc"])
    report = import_threads(saver, stock.url, threads=["c", "a"])
    assert report.threads == ["c", "a"]
    assert saver.get_tuple(at("b")) is None
    with pytest.raises(InvalidInput, match="nobody"):
        import_threads(saver, stock.url, threads=["nobody"])


def test_a_thread_that_was_deleted_here_does_not_come_back(stock, saver):
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config()))
    import_threads(saver, stock.url)
    saver.delete_thread("t")
    report = import_threads(saver, stock.url)
    assert type(report.failed["t"]) is ThreadDeleted
    assert listed(saver) == []


def test_the_progress_ends_with_all_of_it(stock, saver):
    theirs = made(stock, asking, *[lambda graph, t=t: graph.invoke({"log": []}, config(t)) for t in "ab"])
    steps = []
    import_threads(saver, stock.url, progress=steps.append)
    assert [(step.thread_id, step.done, step.total) for step in steps] == [
        ("a", len(theirs) // 2, len(theirs)),
        ("b", len(theirs), len(theirs)),
    ]


def test_a_put_during_an_import_is_not_lost(stock, saver):
    """A graph that begins anew on a thread that is imported halfway: the import's heads are refused."""
    made(stock, asking, lambda graph: graph.invoke({"log": []}, config()))
    graph = chain({"node": says("here")}, checkpointer=saver)
    report = import_threads(saver, stock.url, progress=lambda _: graph.invoke({"log": []}, config()))
    assert type(report.failed["t"]) is StaleWriter
    assert graph.get_state(config()).values["log"] == ["here"]


def test_what_is_no_source_is_refused(tmp_path, saver, monkeypatch):
    with pytest.raises(InvalidInput, match="no file"):
        import_threads(saver, tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(InvalidInput, match="no checkpoints"):
        import_threads(saver, tmp_path / "empty.db")
    monkeypatch.setitem(__import__("sys").modules, "langgraph.checkpoint.sqlite", None)
    with pytest.raises(MissingDependency, match=r"runtime-persist\[import\]"):
        import_threads(saver, tmp_path / "empty.db")


def test_sends_that_wait_behind_an_interrupt_run_here(saver, stock):
    builder = StateGraph(State)
    builder.add_node("plan", says("plan"))
    builder.add_node("ask", lambda given: {"log": [f"did {given['item']}"]})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("ask", {"item": n}) for n in (1, 2)])
    made(
        stock,
        lambda **o: builder.compile(interrupt_before=["ask"], **o),
        lambda graph: graph.invoke({"log": []}, config()),
    )
    import_threads(saver, stock.url)
    graph = builder.compile(checkpointer=saver)
    assert graph.get_state(config()).next == ("ask", "ask")
    assert graph.invoke(None, config())["log"] == ["plan", "did 1", "did 2"]
