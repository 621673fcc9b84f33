from typing import TYPE_CHECKING

from runtime_persist.commands.create_space import CreateSpace
from tests.fixtures.contracts import changed

if TYPE_CHECKING:
    from runtime_persist.engine import Engine


def make(world, **fields):
    return CreateSpace(**(world.base() | {"space": "new", "secret": b"s" * 32} | fields))


def test_it_writes_the_row_and_its_receipt(world):
    command = make(world)
    world.commit(command)
    row = world.raw.one("SELECT * FROM rp_spaces WHERE space = 'new'")
    assert row["secret"] == b"s" * 32
    assert row["created_us"] > 0
    assert world.receipt(command.command_id)["kind"] == "create_space"


def test_the_first_secret_stays(world):
    world.commit(make(world))
    world.commit(make(world, secret=b"t" * 32))
    assert world.raw.value("SELECT secret FROM rp_spaces WHERE space = 'new'") == b"s" * 32


def test_sent_again_it_answers_the_receipt_whatever_the_secret_is(world):
    command = make(world)
    world.commit(command)
    with world.nothing_written():
        assert world.commit(changed(command, secret=b"t" * 32)).replayed


def test_a_second_engine_finds_the_same_secret(shared_url, open_engine):
    first = open_engine(shared_url, space="team")
    second: Engine = open_engine(shared_url, space="team")
    assert first.coordinator.keys.secret == second.coordinator.keys.secret
    assert len(first.coordinator.keys.secret) == 32
    assert open_engine(shared_url, space="other").coordinator.keys.secret != first.coordinator.keys.secret


def test_the_secret_is_not_shown(world):
    assert "ssss" not in repr(make(world))
    assert "secret" not in repr(world.keys)
