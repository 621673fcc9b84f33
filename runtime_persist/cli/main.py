"""The root command; errors end with one clear line and a stable exit code."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from runtime_persist.cli.database import database
from runtime_persist.cli.demo import demo
from runtime_persist.cli.importing import import_command
from runtime_persist.cli.inspect import inspect
from runtime_persist.cli.runs import run_group
from runtime_persist.cli.threads import thread_group
from runtime_persist.cli.worker import worker
from runtime_persist.errors import RuntimePersistError

EXIT_CODES: Final = {
    "invalid": 2,
    "conflict": 3,
    "fenced": 4,
    "unknown": 5,
    "corrupt": 6,
    "failed": 7,
    "retry": 8,
    "bug": 9,
}
"""Exit code by kind of error; 0 is success, 1 an unexpected one."""


class _Root(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RuntimePersistError as error:
            click.echo(f"{error.code}: {error.message}", err=True)
            sys.exit(EXIT_CODES[error.kind])


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="runtime-persist")
def main() -> None:
    """LangGraph agents that survive crashes, and prove it."""


main.add_command(demo)
main.add_command(worker)
main.add_command(run_group)
main.add_command(inspect)
main.add_command(thread_group)
main.add_command(database)
main.add_command(import_command)
