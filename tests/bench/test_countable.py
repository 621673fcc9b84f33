"""Round trips, statements, bytes and their growth stay within bench/bounds.py, on both databases."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from bench import check
from bench.bounds import BOUNDS, CHAT, COUNTS, FILES, STATEMENTS, WORK, WORKER
from bench.savers import POSTGRESQL, SQLITE


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def database(request) -> str:
    return request.param


@pytest.fixture
def new_place(database, tmp_path, request) -> Iterator[Callable[[], str]]:
    """Makes empty databases: file paths or URLs."""
    server = request.getfixturevalue("postgres_server") if database == POSTGRESQL else None
    made: list[str] = []

    def make() -> str:
        made.append(str(tmp_path / f"{len(made)}.db") if server is None else server.create_database())
        return made[-1]

    yield make
    for place in made:
        if server is not None:
            server.drop_database(place)


def exceeded(found: list[check.Finding]) -> dict[str, float]:
    return {one.name: one.value for one in found if not one.holds}


def names(found: list[check.Finding]) -> set[str]:
    return {one.name for one in found}


def test_round_trips_and_statements_stay_within_their_bounds(database, new_place):
    found = check.trips(new_place(), database)
    assert exceeded(found) == {}
    assert names(found) == set(COUNTS)
    assert all(one.value > 0 for one in found if STATEMENTS in one.name)


def test_the_bytes_of_a_chat_and_their_growth_stay_within_their_bounds(database, new_place):
    found = asyncio.run(check.chat_sizes(new_place(), new_place(), database))
    assert exceeded(found) == {}
    assert names(found) == set(CHAT)


def test_the_bytes_of_threads_with_one_big_file_stay_within_their_bounds(database, new_place):
    found = asyncio.run(check.file_sizes(new_place(), database))
    assert exceeded(found) == {}
    assert names(found) == set(FILES)


def test_an_operation_in_a_long_thread_is_no_more_work_than_in_a_short_one(database, new_place):
    found = asyncio.run(check.work(new_place(), database))
    assert exceeded(found) == {}
    assert names(found) == set(WORK)


def test_what_a_worker_sends_for_a_run_stays_within_its_bounds(database, new_place):
    found = check.worker(new_place(), database)
    assert exceeded(found) == {}
    assert names(found) == set(WORKER)
    assert all(one.value > 0 for one in found)


def test_what_is_over_its_bound_is_found():
    name, bound = next(iter(BOUNDS.items()))
    over = check.Finding(name, SQLITE, bound.sqlite + 1)
    assert exceeded([over]) == {name: bound.sqlite + 1}
    assert "TOO MUCH" in check.table([over]).markdown()
    assert exceeded([check.Finding(name, SQLITE, bound.sqlite)]) == {}
