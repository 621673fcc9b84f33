"""worker MODULE:ATTRIBUTE, worker list."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from runtime_persist.cli.options import database_options, echo_json, json_option, opened, serde_reference
from runtime_persist.cli.screen import console, show
from runtime_persist.cli.status_line import StatusLine
from runtime_persist.engine import run as flow
from runtime_persist.inspector.fleet import load_workers
from runtime_persist.inspector.render_fleet import workers_table
from runtime_persist.model import limits
from runtime_persist.model.evidence import IN_PROCESS, SUBPROCESS
from runtime_persist.telemetry import logger
from runtime_persist.telemetry.logs import LEVELS, log_as_json
from runtime_persist.worker import Worker, load_registry
from runtime_persist.worker.runtimes import SubprocessRuntime

if TYPE_CHECKING:
    from types import FrameType

    from runtime_persist.runtime import Runtime


class _WorkerGroup(click.Group):
    """``worker MODULE:ATTRIBUTE`` is short for ``worker run MODULE:ATTRIBUTE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("worker", cls=_WorkerGroup)
def worker_group() -> None:
    """Execute runs, and see who else does. `worker MODULE:ATTRIBUTE` is short for `worker run MODULE:ATTRIBUTE`."""


@worker_group.command("list")
@database_options
@json_option
def list_workers(url: str, space: str, schema: str | None, as_json: bool) -> None:
    """List the workers as they reported themselves last: slots, graphs and versions."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        found = flow(load_workers(runtime.engine))
    if as_json:
        echo_json([worker.model_dump() for worker in found])
    else:
        show(workers_table(found))


@worker_group.command()
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
@click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice([IN_PROCESS, SUBPROCESS]),
    default=IN_PROCESS,
    show_default=True,
    help="What executes attempts of graphs that name no runtime: this process, or a process for each attempt (Linux).",
)
@click.option("--until-idle", is_flag=True, help="End when there is nothing to do.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: lines for people and, on a terminal, a status line. json: one object a line, with the log records of "
    "your nodes; both on stderr.",
)
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="With --log-format json."
)
@database_options
def run(
    registry: str, slots: int, lease_ttl: float, poll: float, drain_timeout: float, runtime_name: str, until_idle: bool,
    log_format: str, log_level: str, url: str, space: str, schema: str | None,
) -> None:  # fmt: skip
    """Execute queued runs of the graphs in MODULE:ATTRIBUTE (a dict of name -> graph or factory)."""
    if log_format == "json":
        log_as_json(log_level)  # before anything that may have something to say
    graphs = load_registry(registry)
    with opened(url, space, schema, lease_ttl=lease_ttl) as runtime, ExitStack() as stack:
        options: dict[str, Any] = {"slots": slots, "poll_seconds": poll, "drain_seconds": drain_timeout}
        if SUBPROCESS in {runtime_name, *(getattr(graph, "runtime", None) for graph in graphs.values())}:
            children = stack.enter_context(SubprocessRuntime(registry, serde=serde_reference()))
            options |= {"runtimes": [children], "default_runtime": runtime_name}
        if log_format == "json":
            ended = _work_and_log(runtime, Worker(runtime, graphs, **options), graphs, until_idle=until_idle)
        else:
            ended = _work_and_show(runtime, graphs, options, until_idle=until_idle)
    if not ended:  # a node that does not return would keep the interpreter: what it does counts no more
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _work_and_log(runtime: Runtime, worker: Worker, graphs: Any, *, until_idle: bool) -> bool:
    """Work, and log what happens; return whether everything was brought to an end."""
    log = logger("runtime_persist.worker")
    _stop_on_signals(worker, None)
    log.info("ready", extra={"worker": runtime.engine.worker_id, "graphs": sorted(graphs)})
    ended = worker.run(until_idle=until_idle)
    log.info("ended", extra={"worker": runtime.engine.worker_id, "left_to_others": not ended})
    return ended


def _work_and_show(runtime: Runtime, graphs: Any, options: dict[str, Any], *, until_idle: bool) -> bool:
    """Work, and show what happens; return whether everything was brought to an end."""
    line = StatusLine(console(stderr=True), runtime.engine.worker_id, options["slots"])
    worker = Worker(runtime, graphs, report=line.told, **options)
    _stop_on_signals(worker, line)
    line.told("ready", {"worker": runtime.engine.worker_id, "graphs": ",".join(sorted(graphs))})
    with line:
        return worker.run(until_idle=until_idle)


def _stop_on_signals(worker: Worker, line: StatusLine | None) -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        if line is not None:
            line.draining = True
        worker.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
