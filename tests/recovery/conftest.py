"""The fixtures of this suite: labs of the kill tests, and runs of a shop that somebody left."""

import pytest

from runtime_persist.engine import dispatch, ownership
from runtime_persist.engine import run as flow
from tests.faults.labs import fork_server, postgres_lab, sqlite_lab
from tests.journal_kills.conftest import database_of, outside, proxy, shop_server
from tests.recovery.shop import CHARGED, ONCE, dies_in_call, registry
from tests.support.capacity import reported
from tests.support.leases import run_out
from tests.support.plugin import *  # noqa: F403

__all__ = ["database_of", "fork_server", "outside", "postgres_lab", "proxy", "shop_server", "sqlite_lab"]


@pytest.fixture(autouse=True)
def nothing_charged():
    CHARGED.clear()
    ONCE.clear()


@pytest.fixture
def start(runtime):
    """Queue a run of the shop."""

    def starts(graph="shop", given=None, **options):
        runtime.bind(registry[graph], name=graph)
        return runtime.runs.start(graph, given or {"log": []}, thread_id="t", **options).run_id

    return starts


@pytest.fixture
def left(start, fork, shared_url, raw):
    """A run whose worker was killed inside a call."""

    def leaves(**options):
        run_id = start(**options)
        child = fork(dies_in_call, shared_url)
        child.until("in call")
        child.kill()
        run_out(raw)
        return run_id

    return leaves


@pytest.fixture
def taken(runtime, start, raw):
    """A run whose worker left it before its graph began: its lease, which ran out."""

    def takes(**options):
        run_id = start(**options)
        engine = runtime.engine
        candidate = {"run_id": run_id, "thread_id": "t", "graph": "shop"}
        owned, _ = flow(ownership.claim(engine, runtime.checkpointer.serde, candidate, instance_id=reported(engine)))
        engine.heartbeats.remove(owned)
        flow(dispatch.activate(owned))
        return owned

    return takes
