"""doctor."""

from __future__ import annotations

import sys

import click

from runtime_persist.cli.options import database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show as on_screen
from runtime_persist.engine import run
from runtime_persist.inspector.doctor import examine
from runtime_persist.inspector.render_doctor import doctor as render

DAMAGED = 6
"""The exit code of damage: that of errors of kind ``corrupt``."""


@click.command()
@database_options
@json_option
def doctor(url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Look for damage in a space, and for what waits for somebody. Nothing is written.

    Rows that name others that are missing, counters that are not what they count, content that is missing or that
    nobody refers to, runs that stand still, clocks, known faults of the SQLite version. Exit code 6: there is damage;
    0: there is none (what only wants attention is no damage). Workers may work meanwhile.
    """
    with opened(url, space, schema, auto_setup=False) as runtime:
        found = run(examine(runtime))
    if as_json:
        echo_json(found.model_dump())
    else:
        on_screen(render(found))
    if found.damaged:
        sys.exit(DAMAGED)
