"""The fixtures of this suite."""

import threading

import pytest

from runtime_persist.worker import Worker
from tests.support.children import Families
from tests.support.plugin import *  # noqa: F403


@pytest.fixture
def family():
    """Starts processes with children of their own; none of them is left behind."""
    with Families() as families:
        yield families.start


@pytest.fixture
def works(runtime):
    """Work on graphs until nothing is left; what was reported."""

    def until_idle(graphs, **options):
        reports = []
        Worker(runtime, graphs, poll_seconds=0.01, report=lambda *said: reports.append(said), **options).run(
            until_idle=True
        )
        return reports

    return until_idle


@pytest.fixture
def working(runtime):
    """Have workers work on graphs until the test ends; what one has reported so far."""
    started = []

    def starts(graphs, *, of=None, **options):
        reports = []
        worker = Worker(of or runtime, graphs, poll_seconds=0.01, report=lambda *said: reports.append(said), **options)
        thread = threading.Thread(target=worker.run)
        thread.start()
        started.append((worker, thread))
        return reports

    yield starts
    for worker, thread in started:
        worker.stop()
        thread.join()
