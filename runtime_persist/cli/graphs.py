"""graph list."""

from __future__ import annotations

import click

from runtime_persist.cli.options import database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show
from runtime_persist.engine import run
from runtime_persist.inspector.fleet import load_graphs
from runtime_persist.inspector.render_fleet import graphs_table


@click.group("graph")
def graph_group() -> None:
    """Look at the graphs that runs can be started of."""


@graph_group.command("list")
@database_options
@json_option
def list_graphs(url: str, space: str, schema: str | None, as_json: bool) -> None:
    """List the registered graphs, their limits, how many of their runs wait and work, and who has them."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        found = run(load_graphs(runtime.engine))
    if as_json:
        echo_json([graph.model_dump() for graph in found])
    else:
        show(graphs_table(found))
