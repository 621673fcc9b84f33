"""The root command; errors end with one clear line and a stable exit code."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, Final, NoReturn

import click

from runtime_persist.cli.bundles import bundle_group
from runtime_persist.cli.database import database
from runtime_persist.cli.demo import demo
from runtime_persist.cli.doctor import doctor
from runtime_persist.cli.domains import domain_group
from runtime_persist.cli.graphs import graph_group
from runtime_persist.cli.importing import import_command
from runtime_persist.cli.inspect import inspect
from runtime_persist.cli.leases import lease_group
from runtime_persist.cli.operations import operation_group
from runtime_persist.cli.recover import recover_group
from runtime_persist.cli.runs import run_group
from runtime_persist.cli.thread_calls import calls
from runtime_persist.cli.threads import thread_group
from runtime_persist.cli.tickets import ticket_group
from runtime_persist.cli.ui import ui
from runtime_persist.cli.worker import worker_group
from runtime_persist.errors import RuntimePersistError
from runtime_persist.model.text import redacted, said_by

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

_DEBUG: Final = "RUNTIME_PERSIST_DEBUG"


class _Root(click.Group):
    def make_context(self, *args: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*args, **options)
        except click.UsageError as error:
            _refuse(error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RuntimePersistError as error:
            _end(error.code, error.message, EXIT_CODES[error.kind])
        except click.UsageError as error:
            _refuse(error)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get(_DEBUG) or (isinstance(error, OSError) and error.errno == errno.EPIPE):
                raise
            text = f"{type(error).__name__}: {redacted(said_by(error))} ({_DEBUG}=1 shows where)"
            _end("UNEXPECTED", text, 1)


def _refuse(error: click.UsageError) -> NoReturn:
    """End with what is wrong with the command line; a group without a command shows its help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        raise error
    where = "runtime-persist" if error.ctx is None else error.ctx.command_path
    _end("USAGE", f"{error.format_message()} See: {where} --help", error.exit_code)


def _end(code: str, text: str, exit_code: int) -> NoReturn:
    click.echo(f"{code}: {' '.join(text.split())}", err=True)
    sys.exit(exit_code)


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="runtime-persist")
def main() -> None:
    """LangGraph agents that survive crashes, and prove it."""


main.add_command(demo)
main.add_command(worker_group)
main.add_command(run_group)
main.add_command(operation_group)
main.add_command(graph_group)
main.add_command(inspect)
main.add_command(bundle_group)
main.add_command(recover_group)
thread_group.add_command(calls)
main.add_command(thread_group)
main.add_command(ticket_group)
main.add_command(lease_group)
main.add_command(domain_group)
main.add_command(database)
main.add_command(doctor)
main.add_command(import_command)
main.add_command(ui)
