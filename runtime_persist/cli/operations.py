"""op list | show | resolve."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from runtime_persist.cli.options import (
    bundle_option,
    by_option,
    database_options,
    echo_json,
    json_option,
    opened,
    parsed_json,
)
from runtime_persist.cli.screen import show as show_on_screen
from runtime_persist.engine import run
from runtime_persist.errors import InvalidInput
from runtime_persist.inspector import records
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.operations import load_operation, load_operations
from runtime_persist.inspector.render_operations import operation, operations_table

if TYPE_CHECKING:
    from pathlib import Path


@click.group("op")
def operation_group() -> None:
    """Look at the journalled calls of the outside world, and say what became of them."""


@operation_group.command("list")
@click.option("--run", "run_id", default=None, metavar="ID", help="Only calls that this run made.")
@click.option("--unknown", is_flag=True, help="Only calls of which nothing proves what became of them.")
@click.option("--limit", default=50, show_default=True, help="At most so many, newest first.")
@click.option("--before", default=None, metavar="ID", help="Only calls that were begun before this one.")
@bundle_option
@database_options
@json_option
def list_operations(
    run_id: str | None, unknown: bool, limit: int, before: str | None, bundle: Path | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List the newest calls."""
    if bundle is not None:
        file = open_bundle(bundle)
        records.run_of(file, run_id or file.manifest.run_id)
        found = records.operations_of(file, limit, unknown=unknown, before=before)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_operations(runtime.engine, run_id, limit, unknown=unknown, before=before))
    if as_json:
        echo_json([one.model_dump() for one in found])
    else:
        show_on_screen(operations_table(found))


@operation_group.command()
@click.argument("operation_id")
@bundle_option
@database_options
@json_option
def show(operation_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show one call with all its tries."""
    if bundle is not None:
        found = records.operation_of(open_bundle(bundle), operation_id)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_operation(runtime.engine, operation_id))
    if as_json:
        echo_json(found.model_dump())
    else:
        show_on_screen(operation(found))


@operation_group.command()
@click.argument("operation_id")
@click.option("--happened/--did-not-happen", default=None, help="What became of it.")
@click.option(
    "--result", "text", default=None, metavar="JSON", help="What it returned (- reads stdin), if it happened."
)
@by_option
@database_options
@json_option
def resolve(
    operation_id: str, happened: bool | None, text: str | None, by: str | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Say what became of a call whose outcome is unknown: the run that asks is queued. Print that run's status.

    One that did not happen is called again, with the same idempotency key.
    """
    if happened is None:
        msg = "say --happened or --did-not-happen"
        raise InvalidInput(msg)
    if text is not None and not happened:
        msg = "--result is what a call returned that happened"
        raise InvalidInput(msg)
    result: Any = None
    if text is not None:
        result = parsed_json(sys.stdin.read() if text == "-" else text, "--result")
    with opened(url, space, schema, auto_setup=False) as runtime:
        status = runtime.runs.resolve(operation_id, happened=happened, result=result, by=by)
    if as_json:
        echo_json({"operation_id": operation_id, "status": status})
    else:
        click.echo(status)
