"""The fixtures of this suite: the common ones, a worker that goes on in this process, and a second runtime."""

import contextlib
import threading

import pytest

from runtime_persist.worker import Worker
from tests.fixtures.raw import wait_until
from tests.support.plugin import *  # noqa: F403


@pytest.fixture
def works(open_runtime):
    """A worker of graphs on a thread and a runtime of its own (another process, as it were) while the block lasts."""

    @contextlib.contextmanager
    def working(graphs, **options):
        own = open_runtime()
        worker = Worker(own, graphs, **{"poll_seconds": 0.02, **options})
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            wait_until(lambda: own.engine.wishes._subscription is not None, "the worker has begun")
            hears(own)
            yield own
        finally:
            worker.stop()
            worker._wake(None)  # it may not look for an hour
            thread.join()

    return working


def hears(runtime):
    """Wait until what other processes say arrives in this one."""
    wait_until(lambda: runtime.engine.notifications.hears, "messages arrive")
    return runtime
