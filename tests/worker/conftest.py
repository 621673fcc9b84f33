"""The fixtures of this suite: the common ones, a worker in this process, and runs for it."""

import threading

import pytest

from runtime_persist.worker import Worker
from tests.support.plugin import *  # noqa: F403


@pytest.fixture
def works(runtime):
    """Work until nothing is left, on a thread of its own: the test may have an event loop."""

    def until_idle(graphs, **options):
        reports = []
        told = {"report": lambda what, facts: reports.append((what, facts))}
        worker = Worker(runtime, graphs, poll_seconds=0.01, **told | options)
        thread = threading.Thread(target=worker.run, kwargs={"until_idle": True})
        thread.start()
        thread.join()
        return reports

    return until_idle


@pytest.fixture
def start(runtime, way):
    async def started(graphs, name, given=None, **options):
        runtime.bind(graphs[name], name=name)
        return await way(runtime.runs, "start", name, given or {"log": []}, **options)

    return started
