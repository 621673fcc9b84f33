"""ticket list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show as show_on_screen
from runtime_persist.engine import run
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.render_tickets import ledger
from runtime_persist.inspector.tickets import load_tickets, tickets_of

if TYPE_CHECKING:
    from pathlib import Path


@click.group("ticket")
def ticket_group() -> None:
    """Look at what the calls of a run took of its budget."""


@ticket_group.command("list")
@click.argument("run_id")
@click.option("--held", is_flag=True, help="Only tickets that are reserved: what other calls may be waiting for.")
@click.option("--limit", default=50, show_default=True, help="At most so many tickets and invocations, newest first.")
@bundle_option
@database_options
@json_option
def list_tickets(
    run_id: str, held: bool, limit: int, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool
) -> None:
    """Show how much of a run's limits is taken, and by which calls.

    A call waits while it would fit only without what is reserved; held tickets are shown oldest first.
    """
    if bundle is not None:
        found = tickets_of(open_bundle(bundle), run_id, limit, held=held)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_tickets(runtime.engine, run_id, limit, held=held))
    if as_json:
        echo_json(found.model_dump())
    else:
        show_on_screen(ledger(found))
