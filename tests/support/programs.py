"""What real processes run. Imported by the fork server before any test: it opens nothing."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import asyncpg  # noqa: F401 (the fork server shall have it)
from langchain_core.messages import HumanMessage
from langgraph.config import get_config

from runtime_persist import Runtime, operation
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter, encoding
from runtime_persist.errors import RuntimePersistError
from runtime_persist.worker import Worker
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import chain, config
from tests.support.leases import renew_often
from tests.support.processes import Word


def pausing(word: Word, result: Any) -> Callable[[Any], Any]:
    """A node that says that it runs, and goes on at the word."""

    def node(_: Any) -> Any:
        word.say("in node")
        word.wait()
        return result

    return node


def _invoke(target: Any, asynchronous: bool, given: Any, thread_id: str, **options: Any) -> Any:
    if asynchronous:
        return asyncio.run(target.ainvoke(given, config(thread_id), **options))
    return target.invoke(given, config(thread_id), **options)


def racer(word: Word, url: str, level: str, asynchronous: bool, threads: list[str]) -> None:
    """Continue each thread once, at the word; the node waits for a second word. Says how each call ended."""
    node = {"node": pausing(word, {"n": 1})}
    if level == "L0":
        opened: Any = WorkflowCheckpointAdapter.from_conn_string(url)
        graph: Any = chain(node, checkpointer=opened)
    else:
        opened = Runtime.open(url)
        graph = opened.bind(chain(node), name="race")
    with opened:
        word.say("ready")
        for thread_id in threads:
            word.wait()
            try:
                output = _invoke(graph, asynchronous, {"n": 0}, thread_id)
            except RuntimePersistError as error:
                word.say("ended", error.code)
            else:
                word.say("ended", output["n"])


def putter(word: Word, url: str, thread_id: str, times: int) -> None:
    """Put a list that grows by 40 messages a time, the same one in every process; starts at the word."""
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        word.say("ready")
        word.wait()
        place = at(thread_id)
        for count in range(1, times + 1):
            messages = [HumanMessage(content=f"message {n} " * 20, id=str(n)) for n in range(40 * count)]
            made = new_checkpoint({"messages": messages}, {"messages": str(count)})
            place = saver.put(place, made, {}, {"messages": str(count)})


def sharer(word: Word, url: str, name: str, bursts: int) -> None:
    """At each word, store and delete threads that share content with those of all other processes.

    It knows nothing of what it did a moment ago: its test lets days go by for the marks of collections.
    """
    encoding.recent = lambda _seen: False  # type: ignore[assignment]
    shared = [f"{n} shared " * 40 for n in range(150)]
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        saver.context.core.engine.content.known._max_seconds = -1.0
        for burst in range(bursts):
            word.say("ready")
            word.wait()
            for n in range(4):
                thread_id = f"{name} {n}"
                made = new_checkpoint({"shared": shared, "own": f"{thread_id} {burst} " * 100})
                place = saver.put(at(thread_id), made, {}, made["channel_versions"])
                saver.put_writes(place, [("shared", shared[n:]), ("own", "x" * 500)], "task")
                after = new_checkpoint(made["channel_values"] | {"n": n}, made["channel_versions"] | {"n": "1"})
                saver.put(place, after, {}, {"n": "1"})
                saver.delete_thread(thread_id)
            kept = new_checkpoint({"shared": shared[burst:], "own": f"{name} {burst} " * 100})
            saver.put(at(f"{name} kept {burst}"), kept, {}, kept["channel_versions"])
            saver.delete_thread(f"{name} kept {burst - 1}")


def invoker(
    word: Word,
    url: str,
    given: Any,
    *,
    result: Any,
    pauses: bool = False,
    asynchronous: bool = False,
    durability: str = "sync",
) -> Any:
    """Call a bound graph of one node once."""
    node = pausing(word, result) if pauses else lambda _: result
    with Runtime.open(url) as runtime:
        graph = runtime.bind(chain({"node": node}), name="g")
        return _invoke(graph, asynchronous, given, "t", durability=durability)


def stale_holder(word: Word, url: str, kind: str) -> str:
    """Take a lease, store a checkpoint, never renew, and write once more at the word; return how that was refused."""
    with Runtime.open(url) as runtime:
        runtime.engine.heartbeats.close()
        lease = runtime.lease(thread_id="t")
        session = runtime.checkpointer.session(lease)
        first = new_checkpoint({"a": "old"})
        place = session.put(at(), first, {}, {"a": "1"})
        word.say("stored", lease.epoch, lease.run_id)
        word.wait()
        try:
            if kind == "put":
                session.put(place, new_checkpoint({"a": "late"}, {"a": "2"}), {}, {"a": "2"})
            else:
                session.put_writes(place, [("a", "late")], "task")
        except RuntimePersistError as error:
            return error.code
        return "accepted"


def taker(_: Word, url: str) -> tuple[int, str]:
    """Take the thread, store something new, and release it."""
    with Runtime.open(url) as runtime, runtime.lease(thread_id="t") as lease:
        session = runtime.checkpointer.session(lease)
        found = session.get_tuple(at())
        assert found is not None
        session.put(found.config, new_checkpoint({"a": "new"}, {"a": "3"}), {}, {"a": "3"})
        return lease.epoch, lease.run_id


def forks_after_opening(_: Word, url: str) -> tuple[str, str, int]:
    """Open a runtime, fork, and use it in the child; return what the child got, and that the parent's still works."""
    with Runtime.open(url) as runtime:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            said = []
            for call in (lambda: runtime.checkpointer.get_tuple(at()), runtime.runs.list):
                try:
                    call()
                    said.append("no error")
                except RuntimePersistError as error:
                    said.append(error.code)
            os.write(writing, " ".join(said).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        codes = os.read(reading, 1_000).decode().split()
        return codes[0], codes[1], len(runtime.runs.list())


def charger(word: Word, url: str, on_unknown: str) -> None:
    """Call a journalled function that says that it was called, and never returns before the word."""

    @operation(name="charge", on_unknown=on_unknown)  # type: ignore[arg-type]
    def charge(what: str, *, idempotency_key: str) -> str:
        word.say("called", what, idempotency_key)
        word.wait()
        return "charged"

    with Runtime.open(url) as runtime:
        graph = runtime.bind(chain({"node": lambda _: {"log": [charge("a")]}}), name="g")
        graph.invoke({"log": []}, config(), durability="sync")


def worker(word: Word, url: str, *, often: bool = False, slots: int = 1, on_sigterm: bool = False) -> list[Any]:
    """Work on graph ``g`` until SIGTERM (or until the word): its node says that it runs, and waits for the word.

    ``often``: leases are renewed often.
    """
    reports: list[Any] = []
    if often:
        renew_often()

    def node(state: Any) -> Any:
        word.say("in node", get_config()["configurable"]["thread_id"])
        return {"log": [word.wait()]}

    graphs = {"g": chain({"node": node, "after": lambda _: {"log": ["after"]}})}
    with Runtime.open(url) as runtime:
        working = Worker(
            runtime,
            graphs,
            slots=slots,
            poll_seconds=0.02,
            report=lambda what, facts: reports.append((what, dict(facts))),
        )

        def stop(*_: Any) -> None:
            working.stop()
            word.say("stopping")

        if on_sigterm:
            signal.signal(signal.SIGTERM, stop)
        word.say("ready", runtime.engine.worker_id)
        working.run()
    return reports


def dies_at_once(word: Word, url: str) -> None:
    """Claim a run of ``g`` and die in its node, once what came before it is stored: a takeover makes no progress."""

    def node(_: Any) -> None:
        own = get_config()["configurable"]
        owned = own["__pregel_checkpointer"].owned_run
        owned.when_durable(own["__pregel_runtime"].execution_info.checkpoint_id).result()
        os._exit(9)

    word.say("ready")
    graphs = {"g": chain({"node": node, "after": lambda _: {"log": ["after"]}})}
    with Runtime.open(url) as runtime:
        Worker(runtime, graphs, poll_seconds=0.02).run()


def nesting(word: Word, url: str) -> None:
    """Call a bound graph in a node of another one; the inner node says that it runs, and waits for the word."""
    with Runtime.open(url) as runtime:
        inner = runtime.bind(chain({"node": pausing(word, {"log": ["inner"]})}), name="inner")
        calls = {"first": lambda _: {"log": ["first"]}, "calls": lambda _: inner.invoke({}, config("inner thread"))}
        runtime.bind(chain(calls), name="outer").invoke({"log": []}, config(), durability="sync")
