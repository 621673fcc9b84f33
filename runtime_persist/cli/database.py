"""db upgrade | current | sql."""

from __future__ import annotations

import click

from runtime_persist.cli.options import schema_option, url_option
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.schema import migrate


@click.group("db")
def database() -> None:
    """Create and upgrade the tables."""


@database.command()
@url_option
@schema_option
def upgrade(url: str, schema: str | None) -> None:
    """Create or upgrade the tables; safe when many processes do it at once."""
    parsed = parse_url(url)
    click.echo(migrate.upgrade(parsed, dialect_of(parsed, schema)))


@database.command()
@url_option
@schema_option
def current(url: str, schema: str | None) -> None:
    """Print the database's schema version."""
    parsed = parse_url(url)
    click.echo(migrate.current(parsed, dialect_of(parsed, schema)) or "none")


@database.command()
@url_option
@schema_option
def sql(url: str, schema: str | None) -> None:
    """Print the statements that create the tables, to be reviewed and run by somebody else."""
    parsed = parse_url(url)
    click.echo(migrate.sql(dialect_of(parsed, schema)))
