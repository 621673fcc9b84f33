"""Every public method in its sync form inside the loop that uses the async ones: it works, it never hangs (F9)."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.types import StateUpdate

from runtime_persist import Budget, Run, Runtime, operation
from runtime_persist.adapters.workflow import BoundGraph, WorkflowCheckpointAdapter
from runtime_persist.engine import OwnedRun
from runtime_persist.engine.lease import Lease
from runtime_persist.engine.revokers import ProcessRevoker
from runtime_persist.errors import CheckpointNotDurable, DomainNotFound, IllegalTransition, OperationNotFound
from runtime_persist.runtime.runs import Runs
from tests.fixtures.raw import DEADLINE_SECONDS
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import asks, chain, config, resume, says

PACKAGE = "runtime_persist."
SCHEMAS = ("input_schema", "output_schema", "input_jsonschema", "output_jsonschema", "context_jsonschema")
DESCRIBING = {f"get_{what}" for what in SCHEMAS}  # they look at the graph, and wait for nothing
INTERNAL = {"register"}  # a flow, for the worker


def sync_methods(kind: type) -> set[str]:
    """The public methods that the package gives a class, without the twins for event loops."""
    found = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    ours = {name for name, one in found.items() if inspect.isroutine(one) and one.__module__.startswith(PACKAGE)}
    return {name for name in ours if not (name[0] == "a" and name[1:] in ours)} - INTERNAL - DESCRIBING


class Calls:
    """Calls methods, and remembers which."""

    def __init__(self, target: Any, own: type) -> None:
        self.target = target
        self.own = own
        self.made: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.made.add(name)
        return getattr(self.target, name)

    def all_made(self) -> None:
        assert sync_methods(self.own) - self.made == set(), "a public method that nobody called"


@operation(name="charge")
def charge(what: str) -> str:
    return f"charged {what}"


async def call_saver(url: str) -> None:
    saver = Calls(WorkflowCheckpointAdapter, WorkflowCheckpointAdapter)
    saver.target = opened = saver.from_conn_string(url)
    await opened.aget_tuple(at())
    saver.setup()
    first = saver.put(at(), new_checkpoint({"n": 1}), {"run_id": "r"}, {"n": "1"})
    saver.put_writes(first, [("n", 2)], "task")
    found = saver.get_tuple(at())
    assert found is not None
    assert found.pending_writes == [("task", "n", 2)]
    assert saver.get(at()) == found.checkpoint
    assert [one.config for one in saver.list(at())] == [first]
    assert saver.get_next_version(None, None)
    assert set(saver.get_delta_channel_history(config=first, channels=["n"])) == {"n"}
    saver.copy_thread("t", "copy")
    assert saver.with_allowlist([("tests", "X")]).get_tuple(at("copy")) is not None
    assert saver.for_graph(chain({"a": says("a")})).get_tuple(at("copy")) is not None
    saver.prune(["t"])
    saver.delete_for_runs(["r"])
    saver.delete_thread("t")
    assert saver.expire_delete_marks() == 0, "none is old"
    assert saver.collect_content().removed == 0, "none was out of use for a day"
    assert await opened.aget_tuple(at()) is None
    with Runtime.open(url) as runtime, runtime.lease(thread_id="owned") as lease:
        session = saver.session(lease)
        session.put(at("owned"), new_checkpoint({"n": 1}), {}, {"n": "1"})
        session.check()
    saver.check()
    saver.close()
    saver.all_made()


async def call_runtime(url: str) -> None:
    runtime = Calls(Runtime, Runtime)
    runtime.target = opened = runtime.open(url)
    lease = Calls(runtime.lease(thread_id="held"), Lease)
    lease.release()
    lease.all_made()
    runtime.bind(chain({"a": asks("why?")}), name="asking")
    async with await opened.alease(thread_id="held"):
        pass
    await call_runs(runtime)
    runtime.close()
    runtime.all_made()


async def call_runs(runtime: Any) -> None:
    graph = runtime.bind(chain({"a": asks("why?")}), name="asking")
    runs = Calls(runtime.runs, Runs)
    graph.invoke({"log": []}, config("waits"))
    (waiting,) = runs.list(thread_id="waits")
    assert runs.get(waiting.run_id).status == "waiting_approval"
    assert "why?" in str(runs.question(waiting.run_id))
    assert runs.answer(waiting.run_id, resume("because"))
    started = runs.start("asking", {"log": []}, thread_id="queued")
    with pytest.raises(OperationNotFound):
        runs.resolve("nothing", happened=True)
    await graph.ainvoke({"log": []}, config("done"))
    await graph.ainvoke(resume("because"), config("done"))
    (done,) = runs.list(thread_id="done")
    assert runs.result(done.run_id)["log"] == ["because"]
    call_run(runtime, runs, done.run_id, started.run_id)
    call_control(runtime, runs, done.run_id, started.run_id)
    runs.all_made()


def call_run(runtime: Any, runs: Any, done: str, started: str) -> None:
    """By the handles of a run that is queued, then of one that waits, then of one that has ended."""
    run = Calls(runs.handle(started), Run)
    assert run.now() == runs.now(started) == "queued"
    assert runs.cancel(started) == "cancelled"
    for number in range(2):
        runtime.bind(chain({"a": asks("why?")}), name="asking").invoke({"log": []}, config(f"resumed {number}"))
        (asking,) = runs.list(thread_id=f"resumed {number}")
        run.target = runs.handle(asking.run_id)
        assert (
            [one.value for one in run.questions()] == [one.value for one in runs.questions(asking.run_id)] == ["why?"]
        )
        assert (run.resume("because") if number == 0 else runs.resume(asking.run_id, "because")) == "queued"
    run.target = runs.handle(done)
    assert run.record().status == run.cancel() == "succeeded"
    assert run.result()["log"] == ["because"]
    assert list(run.events()) == list(runs.events(done))
    assert [chunk.mode for chunk in run.stream()] == [chunk.mode for chunk in runs.stream(done)] == ["end"]
    run.all_made()


def call_control(runtime: Any, runs: Any, done: str, cancelled: str) -> None:
    runtime.register_revoker("process", ProcessRevoker())
    assert next(iter(runtime.events(consumer="reader", wait=True))).type == "run.created"
    assert runs.retry(cancelled).record().retry_of_run_id == cancelled
    assert runs.fork(done, thread_id="forked").record().thread_id == "forked"
    assert runs.domains(done) == []
    assert runs.recover(done, plan=runs.recovery_plan(done)).status == "succeeded"
    with pytest.raises(DomainNotFound):
        runs.confirm_revoked(done, "nothing", by="ann")
    with pytest.raises(IllegalTransition):
        runs.raise_budget(done, Budget(loops=3))


async def call_bound(url: str) -> None:
    with Runtime.open(url) as runtime:
        graph = Calls(
            runtime.bind(chain({"a": says("a"), "b": lambda _: {"log": [charge("b")]}}), name="g"), BoundGraph
        )
        assert graph.invoke({"log": []}, config())["log"] == ["a", "charged b"]
        assert len(list(graph.stream({"log": []}, config()))) == 2
        assert await graph.target.ainvoke({"log": []}, config())
        graph.prune(["t"])
        assert graph.get_state(config()).values["log"] == ["a", "charged b"] * 3
        assert len(list(graph.get_state_history(config()))) == 1
        graph.update_state(config(), {"log": ["edit"]})
        graph.bulk_update_state(config(), [[StateUpdate({"log": ["bulk"]}, "b")]])
        assert graph.get_graph() is not None
        assert list(graph.get_subgraphs()) == []
        each = [config("one"), config("two")]
        assert [out["log"] for out in graph.batch([{"log": []}] * 2, each)] == [["a", "charged b"]] * 2
        assert {number for number, _ in graph.batch_as_completed([{"log": []}] * 2, each)} == {0, 1}
        assert graph.with_config(tags=["x"]).invoke({"log": []}, config("three"))["log"] == ["a", "charged b"]
        graph.all_made()


@pytest.mark.parametrize("calls", [call_saver, call_runtime, call_bound], ids=lambda calls: calls.__name__)
def test_f9_every_public_method_works_in_its_sync_form_inside_the_loop(shared_url, calls):
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, calls(shared_url)).result(DEADLINE_SECONDS)


def test_f9_a_saver_built_and_used_without_a_loop_serves_an_async_graph(shared_url):
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        saver.put(at("other"), new_checkpoint({"n": 1}), {}, {"n": "1"})

        async def node(_: Any) -> dict[str, Any]:
            return {"log": ["async"]}

        graph = chain({"a": node}, checkpointer=saver)
        for times in (1, 2):  # a loop of its own each time
            assert asyncio.run(graph.ainvoke({"log": []}, config()))["log"] == ["async"] * times
        assert graph.get_state(config()).values["log"] == ["async"] * 2


def blocking(runtime: Runtime, name: str = "blocking") -> Any:
    async def node(_: Any) -> dict[str, Any]:
        return {"log": [charge("a")]}  # a sync operation inside an async node

    return runtime.bind(chain({"a": node, "b": says("b")}), name=name)


def test_f9_a_sync_operation_that_would_wait_for_its_own_event_loop_is_refused_at_once(runtime, raw, monkeypatch):
    heard: list[Any] = []
    durable = OwnedRun.durable
    # The loop hears of its checkpoint only when its node has returned, however quick the database is.
    monkeypatch.setattr(OwnedRun, "durable", lambda *given: heard.append(given))

    async def node(_: Any) -> dict[str, Any]:
        try:
            return {"log": [charge("a")]}
        finally:
            monkeypatch.undo()
            for given in heard:
                durable(*given)

    bound = runtime.bind(chain({"a": node}), name="blocking")
    with pytest.raises(CheckpointNotDurable, match=r"async def.*to_thread.*durability"):
        asyncio.run(bound.ainvoke({"log": []}, config(), durability="async"))
    assert raw.value("SELECT count(*) FROM rp_operations") == 0, "it was not started"
    (run,) = runtime.runs.list()
    assert (run.status, run.error_code) == ("failed", "CHECKPOINT_NOT_DURABLE")


def test_f9_every_other_way_to_call_an_operation_inside_an_async_node_works(runtime):
    @operation(name="acharge")
    async def acharge(what: str) -> str:
        return f"charged {what}"

    async def other(_: Any) -> dict[str, Any]:
        return {"log": [await acharge("b"), await asyncio.to_thread(charge, "c")]}

    others = runtime.bind(chain({"a": other}), name="others")

    async def main() -> list[Any]:
        return [
            (await blocking(runtime).ainvoke({"log": []}, config("sync"), durability="sync"))["log"],
            (await others.ainvoke({"log": []}, config("others")))["log"],
        ]

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(asyncio.run, main()).result(DEADLINE_SECONDS)
    assert found == [["charged a", "b"], ["charged b", "charged c"]]
