"""worker MODULE:ATTRIBUTE."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from runtime_persist.cli.options import database_options, opened
from runtime_persist.model import limits
from runtime_persist.worker import Worker, load_registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType


@click.command()
@click.argument("registry", metavar="MODULE:ATTRIBUTE")
@click.option("--slots", default=1, show_default=True, help="Runs executed at the same time.")
@click.option(
    "--lease-ttl",
    default=limits.LEASE_TTL_SECONDS,
    show_default=True,
    help="Seconds a lease lasts.",
)
@click.option("--poll", default=0.25, show_default=True, help="Seconds between two looks for work.")
@click.option(
    "--drain-timeout",
    default=30.0,
    show_default=True,
    help="Seconds runs have to reach their next step after SIGTERM; a second SIGTERM does not wait either.",
)
@click.option("--until-idle", is_flag=True, help="End when there is nothing to do.")
@database_options
def worker(
    registry: str,
    slots: int,
    lease_ttl: float,
    poll: float,
    drain_timeout: float,
    until_idle: bool,
    url: str,
    space: str,
    schema: str | None,
) -> None:  # fmt: skip
    """Execute queued runs of the graphs in MODULE:ATTRIBUTE (a dict of name -> graph or factory)."""
    graphs = load_registry(registry)
    console = Console(stderr=True)
    with opened(url, space, schema, lease_ttl=lease_ttl) as runtime:
        working = Worker(
            runtime,
            graphs,
            slots=slots,
            poll_seconds=poll,
            drain_seconds=drain_timeout,
            report=lambda w, f: _tell(console, w, f),
        )

        def stop(_number: int, _frame: FrameType | None) -> None:
            working.stop()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        _tell(console, "ready", {"worker": runtime.engine.worker_id, "graphs": ",".join(sorted(graphs))})
        ended = working.run(until_idle=until_idle)
    if not ended:  # a node that does not return would keep the interpreter: what it does counts no more
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _tell(console: Console, what: str, facts: Mapping[str, Any]) -> None:
    shown = "  ".join(f"{name}={value}" for name, value in facts.items() if value not in (None, ""))
    console.print(Text(f"{what:9}", style="bold") + Text(shown), soft_wrap=True)
