"""Bring a database to the current schema: one path for both databases, safe when many processes start at once."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from runtime_persist.errors import InvalidInput, SchemaMissing, SchemaTooNew

if TYPE_CHECKING:
    from runtime_persist.dialects import DatabaseUrl, Dialect

VERSION: Final = "1.1"
"""The schema this code writes: major.minor. The same major with a newer minor is accepted (rolling upgrades)."""

VERSION_TABLE: Final = "rp_schema_version"

# Alembic keeps the migration it runs in names of its modules: two threads that set up two databases would send one
# another's statements on each other's connections. Taken behind a database's own lock, never before it.
_alembic = threading.Lock()
_written: dict[tuple[str, str | None], str] = {}
"""What :func:`sql` returned, by dialect and schema: it never changes, and an in-memory database asks each time."""


def _unlocked_in_child() -> None:
    """Begin anew in a forked child: whoever held the lock does not exist there."""
    global _alembic  # noqa: PLW0603 (a lock cannot be released by another thread than its holder's)
    _alembic = threading.Lock()


os.register_at_fork(after_in_child=_unlocked_in_child)


def _config(dialect: Dialect, **attributes: Any) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("sqlalchemy.url", dialect.offline_url())
    config.attributes.update(schema=dialect.schema, **attributes)
    return config


def _stored(connection: Connection, schema: str | None) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE, schema=schema):
        return None
    quoted = connection.dialect.identifier_preparer
    name = f"{quoted.quote(schema)}.{VERSION_TABLE}" if schema else VERSION_TABLE
    found: str | None = connection.execute(text(f"SELECT version_num FROM {name}")).scalar()  # noqa: S608 (quoted)
    return found


def check_schema_name(dialect: Dialect) -> None:
    """Raise InvalidInput for a schema on a database that has none, or an empty name."""
    if dialect.schema is None:
        return
    if not dialect.has_schemas:
        msg = "schema= only means something on PostgreSQL; use one SQLite file for each tenant, or space="
        raise InvalidInput(msg, schema=dialect.schema)
    if not dialect.schema.strip():
        msg = "schema= is empty"
        raise InvalidInput(msg)


def current(url: DatabaseUrl, dialect: Dialect) -> str | None:
    """Return the database's schema version, None when there is none (raises what the native error means)."""
    try:
        return _look(url, dialect)
    except DBAPIError as error:
        raise dialect.classify(_cause(error.orig or error)) from error
    except (OSError, SQLAlchemyError) as error:
        raise dialect.classify(error) from error


def _look(url: DatabaseUrl, dialect: Dialect) -> str | None:
    return dialect.with_connection(
        url.location,
        lambda connection: _stored(connection, dialect.schema),
        alone=False,
    )


def check(version: str | None) -> None:
    """Raise SchemaMissing, or SchemaTooNew for a newer major, before anything is written."""
    if version is None:
        raise SchemaMissing
    major, _, minor = version.partition(".")
    own_major, _, own_minor = VERSION.partition(".")
    if int(major) > int(own_major):
        msg = f"the database has schema {version}, this code writes {VERSION}; upgrade runtime_persist first"
        raise SchemaTooNew(msg, version=version, code_version=VERSION)
    if (int(major), int(minor)) < (int(own_major), int(own_minor)):
        msg = f"the database has schema {version}, this code needs {VERSION}; run `runtime-persist db upgrade`"
        raise SchemaMissing(msg, version=version, code_version=VERSION)


def upgrade(url: DatabaseUrl, dialect: Dialect) -> str:
    """Create or upgrade the tables and return the version; a database that is current is only looked at.

    Raises:
        SchemaTooNew: newer major than this code.
        SchemaMissing: the role may not create what is missing.

    """
    check_schema_name(dialect)

    def work(connection: Connection) -> str:
        version = _current(_stored(connection, dialect.schema))
        if version is not None:
            return version
        if dialect.schema is not None:
            quoted = connection.dialect.identifier_preparer.quote(dialect.schema)
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {quoted}"))
        with _alembic:
            command.upgrade(_config(dialect, connection=connection), "head")
        return VERSION

    try:
        return _current(_look(url, dialect)) or dialect.with_connection(url.location, work)
    except DBAPIError as error:
        native = error.orig or error
        if "permission denied" in str(native) or "readonly" in str(native):
            msg = f"the tables are missing and this role may not create them ({native}); run `runtime-persist db upgrade` with a role that may"  # noqa: E501
            raise SchemaMissing(msg) from error
        raise dialect.classify(_cause(native)) from error
    except (OSError, SQLAlchemyError) as error:
        raise dialect.classify(error) from error


def _current(version: str | None) -> str | None:
    """Return the version when there is nothing to do, None for missing or older tables (raises SchemaTooNew)."""
    try:
        check(version)
    except SchemaMissing:
        return None
    return version


def _cause(error: BaseException) -> BaseException:
    """Return the database driver's own error below SQLAlchemy's adapter."""
    return error.__cause__ or error


def sql(dialect: Dialect) -> str:
    """Return the statements that create the tables, to be reviewed or run by somebody with DDL rights.

    They hold no BEGIN and no COMMIT: whoever runs them decides on the transaction, and can roll all of it back.
    """
    check_schema_name(dialect)
    with _alembic:
        key = (dialect.name, dialect.schema)
        if key not in _written:
            _written[key] = _write(dialect)
        return _written[key]


def _write(dialect: Dialect) -> str:
    buffer = io.StringIO()
    if dialect.schema is not None:
        quoted = dialect.sqlalchemy().identifier_preparer.quote(dialect.schema)
        buffer.write(f"CREATE SCHEMA IF NOT EXISTS {quoted};\n\n")
    config = _config(dialect)
    config.output_buffer = buffer
    command.upgrade(config, "head", sql=True)
    return buffer.getvalue()
