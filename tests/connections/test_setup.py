"""Who may make the tables, and how (user pain F4)."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from runtime_persist import Runtime
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import Engine
from runtime_persist.errors import SchemaMissing
from runtime_persist.schema import migrate
from tests.connections import programs
from tests.fixtures.raw import PostgresRaw
from tests.support.graphs import chain, config, says

SCHEMAS = [None, 'Team "A" 1']
TABLES = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'rp\\_%'"


def statements(url, schema=None):
    return migrate.sql(dialect_of(parse_url(url), schema))


@pytest.fixture
def raw(postgres_dsn):
    made = PostgresRaw(postgres_dsn)
    yield made
    made.close()


def execute(raw, sql):
    raw._runner.run(raw.connection.execute(sql))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_f4_the_printed_statements_run_inside_the_applications_transaction_and_roll_back(postgres_dsn, raw, schema):
    execute(raw, "BEGIN")
    execute(raw, statements(postgres_dsn, schema))
    assert raw.value(TABLES) > 5
    assert raw.connection.is_in_transaction(), "they did not end it"
    execute(raw, "ROLLBACK")
    assert raw.value(TABLES) == 0
    assert raw.value("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'Team%'") == 0


@pytest.mark.parametrize("schema", SCHEMAS)
def test_f4_what_they_make_is_what_setup_makes(postgres_dsn, raw, schema, opened):
    execute(raw, statements(postgres_dsn, schema))
    assert migrate.current(parse_url(postgres_dsn), dialect_of(parse_url(postgres_dsn), schema)) == migrate.VERSION
    runtime = opened(Runtime.open(postgres_dsn, schema=schema, auto_setup=False))
    assert runtime.bind(chain({"a": says("a")}), name="g").invoke({"log": []}, config())["log"] == ["a"]


def test_f4_on_sqlite_too(tmp_path):
    path = tmp_path / "agents.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    statement = ""
    for line in statements(f"sqlite:///{path}").splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):  # a trigger holds semicolons
            connection.execute(statement)
            statement = ""
    assert not statement.strip()
    assert connection.in_transaction
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.executescript(statements(f"sqlite:///{path}"))
    connection.close()
    Engine(path, auto_setup=False).close()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_f4_setup_while_the_application_has_a_transaction_of_its_own(postgres_dsn, raw, schema):
    """Setup never touches the application's connection: what that rolls back is its own."""
    execute(raw, "BEGIN; CREATE TABLE theirs (id int)")
    Engine(postgres_dsn, schema=schema).close()
    execute(raw, "ROLLBACK")
    assert raw.value(TABLES) > 5
    assert raw.value("SELECT count(*) FROM pg_tables WHERE tablename = 'theirs'") == 0


@pytest.fixture
def as_role(postgres_server, postgres_dsn, raw):
    """Addresses of a role that may read and write rows, and nothing else."""
    name = f"app_{urlsplit(postgres_dsn).path.removeprefix('/')}"
    execute(raw, f"CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    yield name
    execute(raw, f"DROP OWNED BY {name}; DROP ROLE {name}")


@pytest.mark.parametrize("through", ["direct", "pooler"])
def test_f4_a_role_without_ddl_rights_does_everything_once_the_tables_are_there(
    postgres_dsn, raw, as_role, through, pooler, opened
):
    url = postgres_dsn.replace("postgres@", f"{as_role}@")
    url = pooler.dsn(url) if through == "pooler" else url
    with pytest.raises(SchemaMissing, match="db upgrade"):
        Runtime.open(url)
    assert raw.value(TABLES) == 0, "nothing half made"
    migrate.upgrade(parse_url(postgres_dsn), dialect_of(parse_url(postgres_dsn)))
    execute(raw, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {as_role}")
    runtime = opened(Runtime.open(url))
    assert runtime.bind(chain({"a": says("a")}), name="g").invoke({"log": []}, config())["log"] == ["a"]
    runtime.checkpointer.delete_thread("t")


def test_f4_an_older_schema_is_named_to_who_may_not_upgrade_it(postgres_dsn, raw, as_role):
    migrate.upgrade(parse_url(postgres_dsn), dialect_of(parse_url(postgres_dsn)))
    execute(raw, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {as_role}")
    raw.rows(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0.9'")
    with pytest.raises(SchemaMissing) as caught:
        Runtime.open(postgres_dsn.replace("postgres@", f"{as_role}@"), auto_setup=False).runs.list()
    assert caught.value.details == {"version": "0.9", "code_version": migrate.VERSION}


def test_opening_a_current_database_waits_for_no_migration_of_others(postgres_url):
    """Somebody's migration hangs with the lock of migrations; everyone else starts all the same."""
    holder = PostgresRaw(postgres_url)
    holder.rows("BEGIN")
    holder.rows(f"SELECT pg_advisory_xact_lock({0x72705F6D69677261})")
    Engine(postgres_url).close()
    holder.close()


def test_setup_by_many_processes_at_once_through_a_pooler(postgres_dsn, pooler, fork):
    children = [fork(programs.setup, pooler.dsn(postgres_dsn)) for _ in range(4)]
    for child in children:
        child.until("ready")
    for child in children:
        child.give_the_word()
    assert len({child.result() for child in children}) == 1


def test_setup_twice_at_once_in_one_process(empty_url):
    with ThreadPoolExecutor(4) as threads:
        engines = list(threads.map(lambda _: Engine(empty_url), range(4)))
    secrets = {engine.coordinator.keys.secret for engine in engines}
    for engine in engines:
        engine.close()
    assert len(secrets) == 1
