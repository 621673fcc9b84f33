"""db upgrade | current | sql | expire-delete-marks."""

from __future__ import annotations

import click

from runtime_persist.cli.options import database_options, opened, schema_option, url_option
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.model import limits
from runtime_persist.schema import migrate


@click.group("db")
def database() -> None:
    """Create and upgrade the tables, and keep them small."""


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


@database.command("expire-delete-marks")
@database_options
@click.option(
    "--days",
    default=limits.DELETE_MARKS_KEPT_DAYS,
    show_default=True,
    type=click.FloatRange(0, limits.DELETE_MARKS_KEPT_DAYS_MAX),
    help="How long a mark is kept.",
)
def expire_delete_marks(url: str, space: str, schema: str | None, days: float) -> None:
    """Forget the threads that were deleted long ago, and print how many; run it now and then."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        click.echo(runtime.checkpointer.expire_delete_marks(days=days))
