"""Fixtures of the suites above the commands: savers, runtimes, both ways, raw rows, real processes.

A suite's ``conftest.py`` imports everything from here.
"""

import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runtime_persist import Runtime
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from runtime_persist.engine import Engine
from tests.fixtures.raw import Raw, connect
from tests.support.processes import Child, forks
from tests.support.way import ASYNC, SYNC, WAYS, Way


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an ``async def`` test by its ``way`` (without that fixture: on an event loop)."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    given.get("way", ASYNC).run(pyfuncitem.obj(**given))
    return True


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    """Sync and async."""
    found: Way = request.param
    return found


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    """Closes what it is given, after the test."""
    kept: list[Any] = []

    def keep(thing: Any) -> Any:
        kept.append(thing)
        return thing

    yield keep
    for thing in reversed(kept):
        thing.close()


@pytest.fixture
def open_saver(engine_url: str, opened: Callable[[Any], Any]) -> Callable[..., WorkflowCheckpointAdapter]:
    """Opens savers of their own on one database (of each kind)."""

    def opens(**options: Any) -> WorkflowCheckpointAdapter:
        made: WorkflowCheckpointAdapter = opened(WorkflowCheckpointAdapter.from_conn_string(engine_url, **options))
        return made

    return opens


@pytest.fixture
def saver(open_saver: Callable[..., WorkflowCheckpointAdapter]) -> WorkflowCheckpointAdapter:
    """An optimistic saver on each kind of database."""
    return open_saver()


@pytest.fixture
def open_runtime(shared_url: str, opened: Callable[[Any], Any]) -> Callable[..., Runtime]:
    """Opens runtimes of their own on one database that many can share: each is a process of its own, as it were."""

    def opens(**options: Any) -> Runtime:
        made: Runtime = opened(Runtime.open(shared_url, **options))
        return made

    return opens


@pytest.fixture
def runtime(open_runtime: Callable[..., Runtime]) -> Runtime:
    """A runtime on a SQLite file and on PostgreSQL."""
    return open_runtime()


class _OnItsThread(Raw):
    """A raw connection that can be used while an event loop runs: everything happens on a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._raw = self._thread.submit(connect, engine).result()
        self.database = type(self._raw)
        self.for_update = self._raw.for_update

    def rows(self, sql: str, *params: Any) -> list[dict[str, Any]]:
        return self._thread.submit(self._raw.rows, sql, *params).result()

    def close(self) -> None:
        self._thread.submit(self._raw.close).result()
        self._thread.shutdown()


@pytest.fixture
def raw_of() -> Iterator[Callable[[Any], Raw]]:
    """Connects beside a runtime or a saver."""
    made: list[Raw] = []

    def connects(thing: Any) -> Raw:
        made.append(_OnItsThread(thing.engine if isinstance(thing, Runtime) else thing._core.engine))
        return made[-1]

    yield connects
    for connection in made:
        connection.close()


@pytest.fixture
def raw(request: pytest.FixtureRequest, raw_of: Callable[[Any], Raw]) -> Raw:
    """A connection beside the runtime's or the saver's."""
    names = request.fixturenames
    return raw_of(request.getfixturevalue("runtime" if "runtime" in names or "open_runtime" in names else "saver"))


@pytest.fixture
def fork() -> Iterator[Callable[..., Child]]:
    """Starts functions of :mod:`tests.support.programs` in real processes; none is left behind."""
    with forks() as start:
        yield start


__all__ = [
    "ASYNC",
    "SYNC",
    "fork",
    "open_runtime",
    "open_saver",
    "opened",
    "pytest_pyfunc_call",
    "raw",
    "raw_of",
    "runtime",
    "saver",
    "way",
]
