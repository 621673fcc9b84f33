"""A database that was used by a test is handed to the next one as its template is, or not at all."""

import pytest

from runtime_persist.engine import Engine
from tests.fixtures import recycled
from tests.fixtures.raw import PostgresRaw
from tests.fixtures.recycled import PostgresDatabases
from tests.fixtures.world import World


@pytest.fixture
def databases(postgres_server, postgres_template):
    made = PostgresDatabases(postgres_server, postgres_template)
    yield made
    made.close()


def dump(dsn):
    raw = PostgresRaw(dsn)
    try:
        return raw.dump()
    finally:
        raw.close()


def test_what_a_test_wrote_is_gone_and_what_was_there_is_back(databases):
    """One that the server looked through meanwhile (autovacuum) is not handed out again; that is rare."""
    assert any(cleaned(databases) for _ in range(5))


def cleaned(databases):
    dsn = databases.take()
    before = dump(dsn)
    assert before["rp_spaces"]
    engine = Engine(dsn)
    with World(engine) as world:
        world.begun(world.owned())
        world.raw.rows("UPDATE rp_spaces SET secret = '\\x00'")
        world.raw.rows("UPDATE rp_schema_version SET version_num = '0.9'")
    engine.close()
    assert dump(dsn) != before
    databases.give_back(dsn)
    again = databases.take()
    assert dump(again) == before
    Engine(again, auto_setup=False).close()
    return again == dsn


def test_sessions_of_the_last_test_are_ended_and_their_transactions_undone(databases):
    dsn = databases.take()
    before = dump(dsn)
    left = PostgresRaw(dsn)
    left.rows("BEGIN")
    left.rows("DELETE FROM rp_spaces")
    databases.give_back(dsn)
    with pytest.raises(Exception, match=r"terminat|closed"):
        left.rows("COMMIT")
    left.close()
    assert databases.take() == dsn
    assert dump(dsn) == before


def test_a_test_that_ends_every_session_does_no_harm(databases):
    dsn = databases.take()
    raw = PostgresRaw(dsn)
    ended = raw.rows(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    raw.close()
    assert ended == [{"pg_terminate_backend": True}]
    databases.give_back(dsn)
    assert databases.take() == dsn


ALTERING = {
    "a table": "CREATE TABLE theirs (id int)",
    "a table less": "DROP TABLE rp_events",
    "a column": "ALTER TABLE rp_runs ADD COLUMN theirs int",
    "a type": "ALTER TABLE rp_runs ALTER COLUMN epoch TYPE numeric",
    "an index less": "DROP INDEX {index}",
    "a schema": "CREATE SCHEMA theirs",
    "a trigger": "CREATE TRIGGER theirs BEFORE UPDATE ON rp_runs FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "a right": "GRANT SELECT ON rp_runs TO pg_monitor",
    "a setting": "ALTER DATABASE {database} SET lock_timeout = 1",
    "statistics": "ANALYZE rp_spaces",
}


@pytest.mark.parametrize("what", ALTERING)
def test_a_database_that_was_altered_is_not_used_again(databases, what):
    dsn = databases.take()
    raw = PostgresRaw(dsn)
    index = raw.value(
        "SELECT min(indexrelid::regclass::text) FROM pg_index WHERE NOT indisprimary AND indrelid = 'rp_runs'::regclass"
    )
    raw.rows(ALTERING[what].format(index=index, database=dsn.rpartition("/")[2]))
    raw.close()
    databases.give_back(dsn)
    assert databases.take() != dsn


def test_a_database_is_not_used_for_ever(databases, monkeypatch):
    monkeypatch.setattr(recycled, "USES", 2)
    first = databases.take()
    databases.give_back(first)
    assert databases.take() == first
    databases.give_back(first)
    assert databases.take() != first
