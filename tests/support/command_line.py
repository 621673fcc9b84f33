"""The command line in a real process, forked from one that has imported everything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import langgraph.checkpoint.postgres  # (the fork server shall have it)
import langgraph.checkpoint.sqlite  # noqa: F401
from click.testing import CliRunner

from runtime_persist.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.processes import Child, Word


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    exit_code: int
    output: str
    errors: str


def command(_word: Word, *arguments: str, folder: Path | None = None) -> Said:
    """Run one command (in a folder, from which modules are imported) and return what it said."""
    if folder is not None:
        os.chdir(folder)
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return Said(done.exit_code, done.stdout, done.stderr)


def says(fork: Callable[..., Child], *arguments: str, **options: Path | None) -> Said:
    """Run one command to its end in a process of its own."""
    said: Said = fork(command, *arguments, **options).result()
    return said
