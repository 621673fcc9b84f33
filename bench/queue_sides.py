"""The processes of the part queues: one that queues items, and one that works on them, of each contestant.

    python -m bench.queue_sides (produce|work) KEY WHERE CONCURRENCY

Both write one line when they are ready. A producer then answers each line of its input (a number: so many items)
with the moment before it queued the first of them; a worker writes a line whenever the function of an item begins.
Moments are nanoseconds of the machine's monotonic clock, which all processes share. Both end with their input.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypedDict

from bench.queue_contestants import BY_KEY, DBOS, OURS, PROCRASTINATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.queue_contestants import Contestant

_NAME = "one"
_PRODUCERS = 8


class State(TypedDict, total=False):
    """The state of a graph that does nothing."""

    done: bool


def begun() -> None:
    """Tell that the function of an item has begun: one write, which is not mixed with another thread's."""
    os.write(1, b"%d\n" % time.monotonic_ns())


def _spread(queue: Callable[[], Any]) -> Callable[[int], None]:
    """Queue many items from several threads, as many clients do (it is not measured)."""
    pool = ThreadPoolExecutor(_PRODUCERS)

    def queue_many(count: int) -> None:
        if count == 1:
            queue()  # on this thread: a hand-over would be measured along
        else:
            list(pool.map(lambda _: queue(), range(count)))

    return queue_many


# --- ours ------------------------------------------------------------------------------------------------------


def _graph():
    from langgraph.graph import START, StateGraph

    async def node(_state: State) -> State:
        begun()
        return {"done": True}

    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile()


def _produce_ours(where: str) -> Callable[[int], None]:
    from runtime_persist import Runtime

    runtime = Runtime.open(where)
    runtime.bind(_graph(), name=_NAME)
    return _spread(lambda: runtime.runs.start(_NAME, {}))


def _work_ours(_contestant: Contestant, where: str, concurrency: int) -> None:
    from runtime_persist import Runtime
    from runtime_persist.worker import Worker

    worker = Worker(Runtime.open(where), {_NAME: _graph()}, slots=concurrency)
    _ready()
    worker.run()


# --- DBOS ------------------------------------------------------------------------------------------------------


def _dbos_url(where: str) -> str:
    return where if where.startswith("postgres") else f"sqlite:///{where}"


def _produce_dbos(where: str) -> Callable[[int], None]:
    from dbos import DBOSClient

    client = DBOSClient(system_database_url=_dbos_url(where))
    options = {"queue_name": _NAME, "workflow_name": _NAME}
    return _spread(lambda: client.enqueue(options))


def _work_dbos(contestant: Contestant, where: str, concurrency: int) -> None:
    from dbos import DBOS as Dbos  # noqa: N811 (DBOS is the name of the contestant here)

    config = {"name": "bench", "system_database_url": _dbos_url(where), "log_level": "ERROR"}
    if contestant.claims_all:  # then its threads are what limits it
        config["max_executor_threads"] = concurrency
    Dbos(config=config)
    Dbos.workflow(name=_NAME)(begun)
    Dbos.launch()
    Dbos.register_queue(
        _NAME,
        worker_concurrency=None if contestant.claims_all else concurrency,
        polling_interval_sec=contestant.poll_seconds,
    )
    _ready()
    threading.Event().wait()


# --- procrastinate ---------------------------------------------------------------------------------------------


def _app(where: str):
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=where))

    @app.task(name=_NAME)
    async def one() -> None:
        begun()

    return app, one


def _produce_procrastinate(where: str) -> Callable[[int], None]:
    app, task = _app(where)
    app.open()

    def queue(count: int) -> None:
        if count == 1:
            task.defer()
        else:
            task.batch_defer(*[{}] * count)

    return queue


def _work_procrastinate(_contestant: Contestant, where: str, concurrency: int) -> None:
    app, _ = _app(where)

    async def work() -> None:
        async with app.open_async():
            _ready()
            await app.run_worker_async(concurrency=concurrency, listen_notify=True, install_signal_handlers=False)

    asyncio.run(work())


def prepare(contestant: Contestant, where: str) -> None:
    """Make the tables, as the documentation of each says; the workers of ours and of DBOS do it themselves."""
    if contestant.kind == PROCRASTINATE:
        import procrastinate

        with procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=where)).open() as app:
            app.schema_manager.apply_schema()


_PRODUCERS_OF = {OURS: _produce_ours, DBOS: _produce_dbos, PROCRASTINATE: _produce_procrastinate}
_WORKERS_OF = {OURS: _work_ours, DBOS: _work_dbos, PROCRASTINATE: _work_procrastinate}


def _ready() -> None:
    os.write(1, b"0\n")


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Be one side of one contestant."""
    role, key, where, concurrency = sys.argv[1:]
    contestant = BY_KEY[key]
    if role == "work":
        threading.Thread(target=_end_with_input, daemon=True).start()
        _WORKERS_OF[contestant.kind](contestant, where, int(concurrency))
        return
    queue = _PRODUCERS_OF[contestant.kind](where)
    _ready()
    for line in sys.stdin:
        moment = time.monotonic_ns()
        queue(int(line))
        os.write(1, b"%d\n" % moment)
    os._exit(0)


if __name__ == "__main__":
    main()
