"""lease show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show as on_screen
from runtime_persist.engine import run
from runtime_persist.inspector import records
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.leases import lease_of, load_lease
from runtime_persist.inspector.render_lease import lease as render

if TYPE_CHECKING:
    from pathlib import Path


@click.group("lease")
def lease_group() -> None:
    """Look at who may commit for a run."""


@lease_group.command()
@click.argument("run_id")
@bundle_option
@database_options
@json_option
def show(run_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show who may commit for RUN_ID and until when, and the epochs before."""
    if bundle is not None:
        file = open_bundle(bundle)
        records.run_of(file, run_id)
        found = lease_of(file)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_lease(runtime.engine, run_id))
    if as_json:
        echo_json(found.model_dump())
    else:
        on_screen(render(found))
