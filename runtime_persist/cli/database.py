"""db upgrade | current | sql | collect | expire-delete-marks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from runtime_persist.cli.options import database_options, echo_json, json_option, opened, schema_option, url_option
from runtime_persist.cli.progress import bar
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.model import limits
from runtime_persist.schema import migrate

if TYPE_CHECKING:
    from runtime_persist.adapters.workflow.collecting import CollectProgress


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


@database.command()
@database_options
@click.option(
    "--hours",
    default=limits.COLLECT_HOURS,
    show_default=True,
    type=click.FloatRange(limits.COLLECT_HOURS_MIN, limits.COLLECT_HOURS_MAX),
    help="How long content that nobody refers to stays, since a collection first found it so.",
)
@json_option
def collect(url: str, space: str, schema: str | None, hours: float, as_json: bool) -> None:
    """Remove content that nobody refers to any more; run it once a day.

    Deleting and pruning leave content, which threads share. What nobody refers to is marked, and removed by a later run
    if that is still so after --hours. Others may write meanwhile, and collect too.
    """
    with opened(url, space, schema, auto_setup=False) as runtime, bar() as shown:
        task = shown.add_task("collecting", total=None)

        def tell(step: CollectProgress) -> None:
            shown.update(task, completed=step.done, total=step.total)

        report = runtime.checkpointer.collect_content(hours=hours, progress=tell)
    if as_json:
        echo_json(asdict(report))
        return
    click.echo(
        f"removed {report.removed:,} of {report.scanned:,} pieces of content ({report.removed_bytes:,} bytes before "
        f"compression); marked {report.marked:,}, still waiting {report.waiting:,}, in use again {report.unmarked:,}"
    )
