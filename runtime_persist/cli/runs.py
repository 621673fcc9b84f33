"""run start | list | show | why | events | result | resume | cancel | retry | now | raise-budget."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened, parsed_json
from runtime_persist.cli.run_control import cancel, now, raise_budget, resume, retry
from runtime_persist.cli.screen import show as show_on_screen
from runtime_persist.engine import run as flow
from runtime_persist.inspector import records
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.render_runs import event_line, run_record, runs_table
from runtime_persist.inspector.render_why import why as render_why
from runtime_persist.inspector.why import load_why, why_of
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.model.states import OnBusy

if TYPE_CHECKING:
    from pathlib import Path

    from runtime_persist.model.records import EventRecord


@click.group("run")
def run_group() -> None:
    """Start runs, look at them, and tell them what to do."""


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
@click.option(
    "--on-busy",
    type=click.Choice([one.value for one in OnBusy]),
    default=OnBusy.ENQUEUE.value,
    show_default=True,
    help="What to do when its thread has open runs.",
)
@click.option("--checkpoint", default=None, metavar="ID", help="Begin at this checkpoint of the thread.")
@click.option("--priority", type=int, default=0, show_default=True, help="The higher goes first.")
@click.option("--scope", default=None, help="At most one active run has a scope (default: none but its thread).")
@database_options
@json_option
def start(
    graph: str, text: str, thread: str | None, key: str | None, deadline: float | None, attempts: int | None,
    on_busy: str, checkpoint: str | None, priority: int, scope: str | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Queue a run of GRAPH for a worker."""
    given = parsed_json(sys.stdin.read() if text == "-" else text, "--input")
    with opened(url, space, schema) as runtime:
        run = runtime.runs.start(
            graph,
            given,
            thread_id=thread,
            idempotency_key=key,
            deadline=deadline,
            retry=None if attempts is None else RetryPolicy(max_attempts=attempts),
            on_busy=on_busy,
            checkpoint_id=checkpoint,
            priority=priority,
            scope=scope,
        )
        if as_json:
            echo_json({"run_id": run.run_id, "thread_id": run.thread_id})
        else:
            click.echo(run.run_id)


@run_group.command("list")
@click.option("--thread", default=None, help="Only runs of this thread.")
@click.option("--limit", default=50, show_default=True, help="At most so many, newest first.")
@click.option("--before", default=None, metavar="ID", help="Only runs that were started before this one.")
@bundle_option
@database_options
@json_option
def list_runs(
    thread: str | None,
    limit: int,
    before: str | None,
    bundle: Path | None,
    url: str,
    space: str,
    schema: str | None,
    as_json: bool,
) -> None:
    """List the newest runs."""
    if bundle is not None:
        file = open_bundle(bundle)
        run = records.run_of(file, file.manifest.run_id)
        listed = thread in {None, run.thread_id} and (before is None or run.run_id < before)
        found = [run][:limit] if listed else []
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = runtime.runs.list(thread_id=thread, limit=limit, before=before)
    if as_json:
        echo_json([record.model_dump() for record in found])
    else:
        show_on_screen(runs_table(found))


@run_group.command()
@click.argument("run_id")
@bundle_option
@database_options
@json_option
def show(run_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show one run."""
    if bundle is not None:
        record = records.run_of(open_bundle(bundle), run_id)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            record = runtime.runs.get(run_id)
    if as_json:
        echo_json(record.model_dump())
    else:
        show_on_screen(run_record(record))


@run_group.command()
@click.argument("run_id")
@bundle_option
@database_options
@json_option
def why(run_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Explain where a run stands: what proves it, what is unknown, what it waits for, and what helps."""
    if bundle is not None:
        file = open_bundle(bundle)
        records.run_of(file, run_id)
        found = why_of(file)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = flow(load_why(runtime.engine, runtime.checkpointer.serde, run_id))
    if as_json:
        echo_json(found.model_dump())
    else:
        show_on_screen(render_why(found))


@run_group.command()
@click.argument("run_id")
@click.option("--after", default=0, show_default=True, metavar="N", help="Only events behind this number.")
@click.option("--follow", is_flag=True, help="Wait for more, until the run has ended.")
@bundle_option
@database_options
@json_option
def events(
    run_id: str, after: int, follow: bool, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool
) -> None:
    """Print what was committed about a run, one event a line (with --json: one object a line)."""
    if bundle is not None:
        for event in records.events_of(open_bundle(bundle), run_id, after):
            click.echo(_line(event) if as_json else event_line(event))
        return
    with opened(url, space, schema, auto_setup=False) as runtime:
        for event in runtime.runs.events(run_id, after=after, wait=follow):
            click.echo(_line(event) if as_json else event_line(event))


def _line(event: EventRecord) -> str:
    return json.dumps(event.model_dump(), default=str, ensure_ascii=False)


@run_group.command()
@click.argument("run_id")
@click.option("--timeout", type=float, default=0.0, show_default=True, help="Seconds to wait for it.")
@database_options
@json_option
def result(run_id: str, timeout: float, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Print a run's result as JSON (with --json too: it has no other form)."""
    del as_json
    with opened(url, space, schema, auto_setup=False) as runtime:
        found: Any = runtime.runs.result(run_id, timeout=timeout)
    echo_json(found)


run_group.add_command(resume)
run_group.add_command(cancel)
run_group.add_command(retry)
run_group.add_command(raise_budget)
run_group.add_command(now)
