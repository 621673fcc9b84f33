"""What a person tells a run: run resume | cancel | retry | now | raise-budget."""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from runtime_persist.cli.options import by_option, database_options, echo_json, json_option, opened, parsed_json
from runtime_persist.model.budgets import Budget


def _say(run_id: str, status: str, *, as_json: bool) -> None:
    """Print a run's status behind what was done."""
    if as_json:
        echo_json({"run_id": run_id, "status": status})
    else:
        click.echo(status)


@click.command()
@click.argument("run_id")
@click.option(
    "--value",
    "text",
    default=None,
    metavar="JSON",
    help="The answer (- reads stdin); a map by interrupt id when it asks several things; none at a breakpoint.",
)
@click.option("--question", default=None, metavar="ID", help="Only this question, not one that came later.")
@click.option("--key", default=None, help="Idempotency key: the same key with the same value is one answer.")
@by_option
@database_options
@json_option
def resume(
    run_id: str, text: str | None, question: str | None, key: str | None, by: str | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Answer what a run asks; it is queued and goes on. Print its status."""
    value: Any = None
    if text is not None:
        value = parsed_json(sys.stdin.read() if text == "-" else text, "--value")
    with opened(url, space, schema, auto_setup=False) as runtime:
        status = runtime.runs.resume(run_id, value, question_id=question, idempotency_key=key, by=by)
    _say(run_id, status, as_json=as_json)


@click.command("raise-budget")
@click.argument("run_id")
@click.option("--loops", type=int, default=None, help="Calls of a model.")
@click.option("--tool-calls", type=int, default=None, help="Calls of tools.")
@click.option("--tokens", type=int, default=None, help="Tokens.")
@click.option("--cost", default=None, metavar="DECIMAL", help="Money, exact to a millionth.")
@click.option("--per-invocation", is_flag=True, help="What each call of a graph inside the run may take, not the run.")
@by_option
@database_options
@json_option
def raise_budget(
    run_id: str, loops: int | None, tool_calls: int | None, tokens: int | None, cost: str | None,
    per_invocation: bool, by: str | None, url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Raise what a run's calls may take; if it waits because that was spent, it goes on. Print its status."""
    try:
        money = None if cost is None else Decimal(cost)
    except InvalidOperation:
        msg = f"not a decimal: {cost!r}"
        raise click.BadParameter(msg, param_hint="--cost") from None
    budget = Budget(loops=loops, tool_calls=tool_calls, tokens=tokens, cost=money)
    if per_invocation:
        budget = Budget(per_invocation=budget)
    with opened(url, space, schema, auto_setup=False) as runtime:
        status = runtime.runs.raise_budget(run_id, budget, by=by)
    _say(run_id, status, as_json=as_json)


@click.command()
@click.argument("run_id")
@database_options
@json_option
def cancel(run_id: str, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Ask for a run to stop, and print its status."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        status = runtime.runs.cancel(run_id)
    _say(run_id, status, as_json=as_json)


@click.command()
@click.argument("run_id")
@database_options
@json_option
def now(run_id: str, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Move a queued run to the front of the queue, or end its wait for a retry; print its status."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        status = runtime.runs.now(run_id)
    _say(run_id, status, as_json=as_json)


@click.command()
@click.argument("run_id")
@click.option("--from-start", is_flag=True, help="Begin where the run began, with its input.")
@click.option("--deadline", type=float, default=None, help="Seconds after which it is stopped (default: the run's).")
@click.option("--key", default=None, help="Idempotency key: the same key is the same retry.")
@database_options
@json_option
def retry(
    run_id: str, from_start: bool, deadline: float | None, key: str | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Start a new run that goes on where an ended one stopped, and print its id."""
    with opened(url, space, schema, auto_setup=False) as runtime:
        made = runtime.runs.retry(run_id, from_start=from_start, deadline=deadline, idempotency_key=key)
        if as_json:
            echo_json({"run_id": made.run_id, "thread_id": made.thread_id, "retry_of_run_id": run_id})
        else:
            click.echo(made.run_id)
