"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from runtime_persist.runtime import Runtime

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_URL = "sqlite:///runtime-persist.db"


def url_option(command: F) -> F:
    """Add ``--url``."""
    return click.option(
        "--url",
        envvar="RUNTIME_PERSIST_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Database (or RUNTIME_PERSIST_URL).",
    )(command)


def space_option(command: F) -> F:
    """Add ``--space``."""
    return click.option("--space", default="default", show_default=True, help="Tenant.")(command)


def schema_option(command: F) -> F:
    """Add ``--schema``."""
    return click.option("--schema", default=None, help="PostgreSQL schema of the tables.")(command)


def json_option(command: F) -> F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def database_options(command: F) -> F:
    """Add ``--url``, ``--space`` and ``--schema``."""
    return url_option(space_option(schema_option(command)))


@contextmanager
def opened(url: str, space: str, schema: str | None, **options: Any) -> Iterator[Runtime]:
    """Open a runtime for one command."""
    with Runtime.open(url, space=space, schema=schema, **options) as runtime:
        yield runtime


def echo_json(value: Any) -> None:
    """Print a value as JSON; what JSON has no form for is printed as text."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))
