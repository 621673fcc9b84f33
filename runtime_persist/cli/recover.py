"""recover plan | apply."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from runtime_persist.cli.options import (
    bundle_option,
    database_options,
    echo_json,
    json_option,
    opened,
    serde_reference,
)
from runtime_persist.cli.screen import show
from runtime_persist.errors import InvalidInput
from runtime_persist.inspector import records
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.recovery import plan_of_bundle
from runtime_persist.inspector.render_recovery import plan_tree, recovered_line
from runtime_persist.model import limits
from runtime_persist.model.evidence import IN_PROCESS, SUBPROCESS
from runtime_persist.runtime.recovering import as_json as recovered_json
from runtime_persist.worker import load_registry, recover
from runtime_persist.worker.runtimes import SubprocessRuntime

if TYPE_CHECKING:
    from pathlib import Path

    from runtime_persist.runtime import Runtime
    from runtime_persist.runtime.recovering import Recovered


@click.group("recover")
def recover_group() -> None:
    """See what recovery would do with a run, and have exactly that done."""


@recover_group.command("plan")
@click.argument("run_id")
@bundle_option
@database_options
@json_option
def plan_command(run_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """Show what recovery would do with RUN_ID, why, and what that does outside; and the plan's hash.

    Nothing is changed. The hash is the same for the same rows, in every process; it says what changes it.
    """
    if bundle is not None:
        file = open_bundle(bundle)
        records.run_of(file, run_id)
        found = plan_of_bundle(file)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = runtime.runs.recovery_plan(run_id)
    if as_json:
        echo_json({"hash": found.hash, **found.model_dump()})
    else:
        show(plan_tree(found))


@recover_group.command("apply")
@click.argument("run_id")
@click.option(
    "--plan", "plan_hash", required=True, metavar="HASH", help="Of `recover plan`; without it nothing is done."
)
@click.option(
    "--app",
    default=None,
    metavar="MODULE:ATTRIBUTE",
    help="Graphs, as a worker takes them: the run is executed here. Without it workers go on with the run.",
)
@click.option(
    "--runtime",
    "runtime_name",
    type=click.Choice([IN_PROCESS, SUBPROCESS]),
    default=IN_PROCESS,
    show_default=True,
    help="With --app: what executes the attempt of a graph that names no runtime.",
)
@click.option("--lease-ttl", default=limits.LEASE_TTL_SECONDS, show_default=True, help="Seconds a lease lasts.")
@database_options
@json_option
def apply_command(
    run_id: str, plan_hash: str, app: str | None, runtime_name: str, lease_ttl: float,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Do what the plan of RUN_ID says, or nothing: when something is not as the plan saw it, the error names what.

    A run that was left is taken over: older epochs are refused from then on, and what they opened is revoked before
    anything is started.
    """
    if app is None and runtime_name != IN_PROCESS:
        msg = "--runtime says how a graph is executed here, so it needs --app"
        raise InvalidInput(msg)
    with opened(url, space, schema, auto_setup=False, lease_ttl=lease_ttl) as runtime:
        found = (
            runtime.runs.recover(run_id, plan=plan_hash)
            if app is None
            else _executed(runtime, run_id, plan_hash, app, runtime_name)
        )
    if as_json:
        echo_json(recovered_json(found))
    else:
        show(recovered_line(found))


def _executed(runtime: Runtime, run_id: str, plan_hash: str, app: str, runtime_name: str) -> Recovered:
    graphs = load_registry(app)
    with ExitStack() as stack:
        options: dict[str, Any] = {}
        if SUBPROCESS in {runtime_name, *(getattr(graph, "runtime", None) for graph in graphs.values())}:
            children = stack.enter_context(SubprocessRuntime(app, serde=serde_reference()))
            options = {"runtimes": [children], "default_runtime": runtime_name}
        return recover(runtime, run_id, plan=plan_hash, graphs=graphs, **options)
