"""Declared = migrated; who may open which version; where the tables go."""

import sqlite3
import uuid
from urllib.parse import urlsplit

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, inspect

from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import Engine
from runtime_persist.errors import ConnectionLost, DatabaseUnavailable, InvalidInput, SchemaMissing, SchemaTooNew
from runtime_persist.schema import metadata, migrate
from tests.fixtures.raw import PostgresRaw, Raw, SqliteRaw
from tests.fixtures.world import World


@pytest.fixture
def raw(request):
    """A connection to the database of ``shared_url`` or ``empty_url``."""
    name = "shared_url" if "shared_url" in request.fixturenames else "empty_url"
    url = parse_url(request.getfixturevalue(name))
    made: Raw = (
        PostgresRaw(url.location)
        if url.dialect == "postgresql"
        else SqliteRaw(sqlite3.connect(url.location, isolation_level=None), own=True)
    )
    yield made
    made.close()


def tables(raw):
    sqlite = isinstance(raw, SqliteRaw)
    sql = "SELECT name FROM sqlite_master" if sqlite else "SELECT relname AS name FROM pg_class"
    return sorted(row["name"] for row in raw.rows(sql) if row["name"].startswith("rp_"))


def test_the_declared_schema_is_the_migrated_one(shared_url):
    url = parse_url(shared_url)

    def differences(connection):
        options = {"version_table": migrate.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert dialect_of(url).with_connection(url.location, differences) == []


def test_the_declared_checks_are_the_migrated_ones(shared_url):
    url = parse_url(shared_url)

    def checks(connection):
        look = inspect(connection)
        return {
            table.name: sorted(check["name"] for check in look.get_check_constraints(table.name))
            for table in metadata.sorted_tables
        }

    declared = {
        table.name: sorted(part.name for part in table.constraints if isinstance(part, CheckConstraint))
        for table in metadata.sorted_tables
    }
    assert dialect_of(url).with_connection(url.location, checks) == declared


def test_postgresql_does_not_compress_what_is_compressed(postgres_raw):
    found = postgres_raw().rows(
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE a.attstorage = 'e' AND c.relname LIKE 'rp!_%' ESCAPE '!' AND a.attnum > 0 ORDER BY 1"
    )
    assert [tuple(row.values()) for row in found] == [("rp_blobs", "content"), ("rp_checkpoints", "body")]


def test_an_in_memory_database_has_the_same_tables(sqlite_url, open_engine):
    def schema(connection):
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        return [(row[0], row[1], " ".join((row[2] or "").split())) for row in rows]

    memory = open_engine("sqlite:///:memory:")
    connection = sqlite3.connect(parse_url(sqlite_url).location)
    assert schema(memory._driver._writer) == schema(connection)
    connection.close()


def set_version(raw, version):
    raw.rows(f"UPDATE {migrate.VERSION_TABLE} SET version_num = ?", version)


def test_a_newer_minor_is_accepted(shared_url, raw, open_engine):
    set_version(raw, "1.7")
    with World(open_engine(shared_url)) as world:
        world.owned()
    assert raw.value(f"SELECT version_num FROM {migrate.VERSION_TABLE}") == "1.7"


@pytest.mark.parametrize("auto_setup", [True, False])
def test_a_newer_major_is_refused_before_anything_is_written(shared_url, raw, open_engine, auto_setup):
    set_version(raw, "2.0")
    before = raw.dump()
    with pytest.raises(SchemaTooNew) as caught:
        open_engine(shared_url, space="new", auto_setup=auto_setup).coordinator  # noqa: B018
    assert caught.value.details == {"version": "2.0", "code_version": migrate.VERSION}
    assert raw.dump() == before
    assert raw.value(f"SELECT version_num FROM {migrate.VERSION_TABLE}") == "2.0"


def test_without_setup_missing_tables_are_named_and_not_made(empty_url, raw, open_engine):
    engine: Engine = open_engine(empty_url, auto_setup=False)
    for _ in range(2):
        with pytest.raises(SchemaMissing, match="db upgrade"):
            engine.coordinator  # noqa: B018
    assert tables(raw) == []
    engine.setup()  # asked for by hand
    assert engine.coordinator.keys.secret


def test_without_setup_a_migrated_database_is_used(shared_url, raw, open_engine):
    assert len(open_engine(shared_url, space="another", auto_setup=False).coordinator.keys.secret) == 32


# --- PostgreSQL: roles and schemas ----------------------------------------------------------------------------------


@pytest.fixture
def as_role(postgres_server):
    """The address of a database for a role that may not create anything."""
    admin = PostgresRaw(postgres_server.dsn())
    role = f"reader_{uuid.uuid4().hex}"  # roles are the server's, which other workers use too
    admin.rows(f"CREATE ROLE {role} LOGIN")
    made: list[str] = []

    def address(dsn, *grants):
        made.append(dsn)
        own = PostgresRaw(dsn)
        own.rows("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        for statement in grants:
            own.rows(f"{statement} TO {role}")
        own.close()
        return urlsplit(dsn)._replace(netloc=f"{role}@127.0.0.1:{postgres_server.port}").geturl()

    yield address
    for dsn in made:
        own = PostgresRaw(dsn)
        own.rows(f"DROP OWNED BY {role}")
        own.close()
    admin.rows(f"DROP ROLE {role}")
    admin.close()


@pytest.mark.parametrize("schema", [None, "own"])
def test_a_role_that_may_not_create_tables_is_told_who_may(postgres_dsn, as_role, open_engine, schema):
    with pytest.raises(SchemaMissing, match="db upgrade"):
        open_engine(as_role(postgres_dsn), schema=schema)


def test_a_role_that_may_only_read_and_write_opens_what_another_made(postgres_url, as_role, open_engine):
    address = as_role(postgres_url, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public")
    with World(open_engine(address)) as world:
        world.owned()


SCHEMA = 'Team "A" 1'


def test_a_schema_holds_all_tables_whatever_its_name(postgres_dsn, open_engine):
    with World(open_engine(postgres_dsn, schema=SCHEMA)) as world:
        where = "SELECT schemaname, tablename FROM pg_tables WHERE tablename LIKE 'rp_%'"
        made = {(row["schemaname"], row["tablename"]) for row in world.raw.rows(where)}
        assert made == {(SCHEMA, table) for table in [*metadata.tables, migrate.VERSION_TABLE]}
        world.raw.rows("SET search_path TO " + '"Team ""A"" 1"')
        held = world.owned()
        operation = world.begun(held)
        world.commit(world.next_try(held, operation))
        world.commit(world.complete(held, operation, try_no=2))
        world.commit(world.commit_checkpoint(held))
        world.commit(world.commit_writes(held, "a"))
        world.commit(world.renew(held))
        world.commit(world.put_checkpoint("free", expects=None))
        world.commit(world.put_writes("a", thread_id="free"))
        assert world.tries(operation) == ["unknown", "succeeded"]
    again = open_engine(postgres_dsn, schema=SCHEMA, auto_setup=False)
    assert again.coordinator.keys == world.keys


def test_two_schemas_of_one_database_do_not_meet(postgres_dsn, open_engine):
    first, second = (open_engine(postgres_dsn, schema=name) for name in ("a", "b"))
    assert first.coordinator.keys.secret != second.coordinator.keys.secret


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "file"])
def test_a_schema_on_sqlite_is_refused_and_no_file_is_made(tmp_path, url):
    path = tmp_path / "agents.db"
    with pytest.raises(InvalidInput, match="PostgreSQL"):
        Engine(path if url == "file" else url, schema="own")
    assert not path.exists()


@pytest.mark.parametrize("schema", ["", "  "])
def test_an_empty_schema_name_is_refused(schema):
    with pytest.raises(InvalidInput):
        Engine("postgresql://127.0.0.1:1/nothing", schema=schema)


# --- databases that are not there -----------------------------------------------------------------------------------


@pytest.mark.parametrize("auto_setup", [True, False])
def test_a_server_that_is_not_there_is_a_typed_error(open_engine, auto_setup):
    with pytest.raises((ConnectionLost, DatabaseUnavailable)):
        open_engine("postgresql://postgres@127.0.0.1:1/nothing", auto_setup=auto_setup).coordinator  # noqa: B018


@pytest.mark.parametrize("auto_setup", [True, False])
def test_a_database_that_is_not_there_is_a_typed_error(postgres_server, open_engine, auto_setup):
    with pytest.raises(DatabaseUnavailable):
        open_engine(postgres_server.dsn("nothing"), auto_setup=auto_setup).coordinator  # noqa: B018


@pytest.mark.parametrize("auto_setup", [True, False])
def test_a_file_that_is_no_database_is_a_typed_error(tmp_path, open_engine, auto_setup):
    path = tmp_path / "notes.db"
    path.write_bytes(b"these are my notes, and no database" * 100)
    with pytest.raises(DatabaseUnavailable):
        open_engine(f"sqlite:///{path}", auto_setup=auto_setup).coordinator  # noqa: B018
    assert path.read_bytes().startswith(b"these are my notes")
