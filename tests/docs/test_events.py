"""docs/events.md: its code runs and prints what its comments say; its numbers are those of the code."""

import inspect
from pathlib import Path

from runtime_persist.model import limits
from runtime_persist.runtime import events, runs, streaming
from runtime_persist.worker import Worker
from tests.support.pages import check_prints

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    check_prints(PAGE, tmp_path)


def test_its_numbers_are_those_of_the_code():
    assert f"acknowledged {limits.EVENTS_PAGE} events" in PAGE
    assert f"({limits.STREAM_WAITING_CHUNKS_MAX:,} chunks behind)" in PAGE
    assert f"more than {limits.STREAM_CHUNK_BYTES_MAX // 1_048_576} MiB" in PAGE
    assert f"at most {limits.EVENT_PAYLOAD_BYTES_MAX // 1_024} KiB" in PAGE
    poll = inspect.signature(Worker).parameters["poll_seconds"].default
    looks = (poll, runs._LONGEST_LOOK_SECONDS, events._LONGEST_LOOK_SECONDS)
    assert "({:g}), results at most every {:g} seconds, events and consumers {:g}.".format(*looks) in PAGE
    assert streaming._LOOK_SECONDS == events._LONGEST_LOOK_SECONDS
