"""inspect RUN."""

from __future__ import annotations

import click
from rich.console import Console

from runtime_persist.cli.options import database_options, echo_json, json_option, opened
from runtime_persist.engine import run
from runtime_persist.inspector import load_bundle
from runtime_persist.inspector.render import bundle as render


@click.command()
@click.argument("run_id")
@database_options
@json_option
def inspect(run_id: str, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show what a run did, what is unknown, and what recovery would do."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        found = run(load_bundle(runtime.engine, runtime.checkpointer.serde, run_id))
    if as_json:
        echo_json(found.model_dump())
    else:
        Console().print(render(found))
