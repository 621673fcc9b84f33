"""run start | list | show | result | cancel | now."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from runtime_persist.cli.options import database_options, echo_json, json_option, opened
from runtime_persist.errors import InvalidInput
from runtime_persist.inspector.render import runs_table
from runtime_persist.model.retry import RetryPolicy

if TYPE_CHECKING:
    from runtime_persist.model.records import RunRecord


@click.group("run")
def run_group() -> None:
    """Start runs and look at them."""


@run_group.command()
@click.argument("graph")
@click.option(
    "--input",
    "text",
    default="{}",
    show_default=True,
    help="The graph's input as JSON; - reads stdin.",
)
@click.option("--thread", default=None, help="Thread id (default: a new one).")
@click.option(
    "--key",
    default=None,
    help="Idempotency key: the same key with the same input is the same run.",
)
@click.option("--deadline", type=float, default=None, help="Seconds after which it is stopped (default: never).")
@click.option(
    "--attempts",
    type=int,
    default=None,
    help="How often it is attempted when it fails (default: as its graph was registered).",
)
@database_options
@json_option
def start(
    graph: str, text: str, thread: str | None, key: str | None, deadline: float | None, attempts: int | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Queue a run of GRAPH for a worker."""
    given = _json(sys.stdin.read() if text == "-" else text)
    with opened(url, space, schema) as runtime:
        retry = None if attempts is None else RetryPolicy(max_attempts=attempts)
        run = runtime.runs.start(graph, given, thread_id=thread, idempotency_key=key, deadline=deadline, retry=retry)
        if as_json:
            echo_json({"run_id": run.run_id, "thread_id": run.thread_id})
        else:
            click.echo(run.run_id)


@run_group.command("list")
@click.option("--thread", default=None, help="Only runs of this thread.")
@click.option("--limit", default=50, show_default=True, help="At most so many, newest first.")
@database_options
@json_option
def list_runs(
    thread: str | None,
    limit: int,
    url: str,
    space: str,
    schema: str | None,
    as_json: bool,
) -> None:
    """List the newest runs."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        found = runtime.runs.list(thread_id=thread, limit=limit)
    if as_json:
        echo_json([record.model_dump() for record in found])
    else:
        Console().print(runs_table(found))


@run_group.command()
@click.argument("run_id")
@database_options
@json_option
def show(run_id: str, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show one run."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        record = runtime.runs.get(run_id)
    _print(record, as_json=as_json)


@run_group.command()
@click.argument("run_id")
@click.option("--timeout", type=float, default=0.0, show_default=True, help="Seconds to wait for it.")
@database_options
def result(run_id: str, timeout: float, url: str, space: str, schema: str | None) -> None:
    """Print a run's result as JSON."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        echo_json(runtime.runs.result(run_id, timeout=timeout))


@run_group.command()
@click.argument("run_id")
@database_options
def cancel(run_id: str, url: str, space: str, schema: str | None) -> None:
    """Ask for a run to stop, and print its status."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        click.echo(runtime.runs.cancel(run_id))


@run_group.command()
@click.argument("run_id")
@database_options
def now(run_id: str, url: str, space: str, schema: str | None) -> None:
    """Move a queued run to the front of the queue, or end its wait for a retry; print its status."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        click.echo(runtime.runs.now(run_id))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        msg = f"--input is not JSON: {error}"
        raise InvalidInput(msg) from error


def _print(record: RunRecord, *, as_json: bool) -> None:
    if as_json:
        echo_json(record.model_dump())
    else:
        Console().print(runs_table([record]))
