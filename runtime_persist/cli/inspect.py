"""inspect RUN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show as on_screen
from runtime_persist.engine import run
from runtime_persist.inspector import load_bundle, records
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.render import bundle as render

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("run_id")
@bundle_option
@database_options
@json_option
def inspect(run_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show what a run did, what is unknown, and what recovery would do."""
    if bundle is not None:
        file = open_bundle(bundle)
        records.run_of(file, run_id)
        found = view_of(file)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_bundle(runtime.engine, runtime.checkpointer.serde, run_id))
    if as_json:
        echo_json(found.model_dump())
    else:
        on_screen(render(found))
