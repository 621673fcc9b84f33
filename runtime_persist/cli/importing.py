"""import --from URL."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from runtime_persist.adapters.workflow.importing import ImportReport, import_threads
from runtime_persist.adapters.workflow.importing import Progress as Step
from runtime_persist.cli.options import database_options, echo_json, json_option, opened
from runtime_persist.cli.progress import bar


@click.command("import")
@click.option("--from", "source", required=True, metavar="URL", help="SqliteSaver's file or PostgresSaver's database.")
@click.option("--from-schema", default=None, help="PostgreSQL schema of the source.")
@click.option("--thread", "threads", multiple=True, metavar="ID", help="Only this thread (may be repeated).")
@click.option(
    "--load",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import this module first: values of its classes can then be read (may be repeated).",
)
@database_options
@json_option
def import_command(
    source: str,
    from_schema: str | None,
    threads: tuple[str, ...],
    modules: tuple[str, ...],
    url: str,
    space: str,
    schema: str | None,
    as_json: bool,
) -> None:
    """Copy threads of langgraph's SqliteSaver or PostgresSaver, and compare each checkpoint with its source.

    The source is only read. Run it again after a crash, or when the source went on: what is here already is skipped.
    """
    sys.path.insert(0, "")
    for module in modules:
        import_module(module)
    with opened(url, space, schema) as runtime, bar() as shown:
        task = shown.add_task("", total=None)

        def tell(step: Step) -> None:
            shown.update(task, completed=step.done, total=step.total, description=step.thread_id)

        report = import_threads(
            runtime.checkpointer, source, threads=threads or None, schema=from_schema, progress=tell
        )
    _print(report, as_json=as_json)
    if report.failed:
        raise next(iter(report.failed.values()))


def _print(report: ImportReport, *, as_json: bool) -> None:
    if as_json:
        failed = {thread: str(error) for thread, error in report.failed.items()}
        numbers = {"checkpoints": report.checkpoints, "present": report.present}
        echo_json({"threads": report.threads, "left": report.left, **numbers, "failed": failed})
        return
    click.echo(
        f"{len(report.threads)} threads are here and equal to their source: {report.checkpoints} checkpoints stored, "
        f"{report.present} were here already"
    )
    for thread in report.left:
        click.echo(f"left alone: thread {thread!r} went on here since it was imported")
    for thread, error in report.failed.items():
        click.echo(f"not imported: thread {thread!r}: {error}", err=True)
