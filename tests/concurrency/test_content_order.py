"""Two processes that store the same content, each in an order of its own: neither waits for the other's end."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from runtime_persist.commands.store_content import StoreContent
from runtime_persist.contentstore import pack
from runtime_persist.engine import Engine
from runtime_persist.model.payload import Blob
from tests.fixtures.raw import wait_until
from tests.fixtures.world import World
from tests.support.processes import Child, Word, forks

ROUNDS = 6
BLOBS = 150


@pytest.fixture
def fork() -> Iterator[Callable[..., Child]]:
    with forks() as start:
        yield start


def hot(world: World, number: int, blobs: list[Blob]) -> Any:
    return StoreContent(owner=world.engine.owner, blobs=blobs, **world.base())


def cold(world: World, number: int, blobs: list[Blob]) -> Any:
    return world.start_run(f"thread {number} {blobs[0].address.hex()}", blobs=tuple(blobs))


COMMANDS = {"a command of one statement": hot, "a command of many": cold}


def sends(word: Word, url: str, what: str, *, backwards: bool) -> None:
    """Store the same content as the other process, at the same moment, the other way round."""
    engine = Engine(url)
    with World(engine) as world:
        for number in range(ROUNDS):
            found = [Random(f"{number} {n}").randbytes(2_000) for n in range(BLOBS)]
            blobs = [Blob(world.keys.address(engine.owner, one), len(one), pack(one)) for one in found]
            blobs.sort(key=lambda blob: blob.address, reverse=backwards)
            command = COMMANDS[what](world, number, blobs)
            word.say("ready")
            word.wait()
            world.commit(command)
    engine.close()


@pytest.mark.parametrize("what", COMMANDS)
def test_no_one_waits_in_a_circle(postgres_url, open_engine, fork, what):
    with World(open_engine(postgres_url)) as world:
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ours, before = world.raw.value(sessions), world.raw.value(deadlocks)
        pair = [fork(sends, postgres_url, what, backwards=backwards) for backwards in (False, True)]
        for _ in range(ROUNDS):
            for child in pair:
                child.until("ready")
            for child in pair:
                child.give_the_word()
        for child in pair:
            child.result()
        # A session has told the server's counters when it is gone.
        wait_until(lambda: world.raw.value(sessions) <= ours, "the sessions of both have ended")
        assert world.raw.value(deadlocks) == before
        assert world.count("rp_blobs") == ROUNDS * BLOBS
