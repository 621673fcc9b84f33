"""domain list | revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show
from runtime_persist.inspector import records
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.render import domains_table

if TYPE_CHECKING:
    from pathlib import Path


@click.group("domain")
def domain_group() -> None:
    """What a run's attempts could still write to outside the database."""


@domain_group.command("list")
@click.argument("run_id")
@bundle_option
@database_options
@json_option
def list_domains(run_id: str, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool) -> None:
    """List the execution domains of RUN_ID with the proofs that they can no longer write."""
    if bundle is not None:
        found = records.domains_of(open_bundle(bundle), run_id)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = runtime.runs.domains(run_id)
    if as_json:
        echo_json([domain.model_dump(mode="json") for domain in found])
    else:
        show(domains_table(found))


@domain_group.command()
@click.argument("run_id")
@click.argument("domain_id")
@click.option("--by", required=True, help="Who says it; recorded with the receipt.")
@click.option("--why", default=None, help="How it is known.")
@database_options
@json_option
def revoke(
    run_id: str, domain_id: str, by: str, why: str | None, url: str, space: str, schema: str | None, as_json: bool
) -> None:
    """Say that DOMAIN_ID of RUN_ID can no longer write, when nothing else proves it; the run goes on then.

    Say it only when you know it: the process was ended, the machine thrown away.
    """
    with opened(url, space, schema, auto_setup=False) as runtime:
        found = runtime.runs.confirm_revoked(run_id, domain_id, by=by, why=why)
    if as_json:
        echo_json(found.model_dump(mode="json"))
    else:
        show(domains_table([found]))
