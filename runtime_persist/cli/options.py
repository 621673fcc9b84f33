"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from langgraph.checkpoint.serde.base import SerializerProtocol

from runtime_persist.errors import InvalidInput
from runtime_persist.runtime import Runtime
from runtime_persist.worker import load_attribute

F = TypeVar("F", bound=Callable[..., Any])

_SERDE = "runtime_persist.serde"
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


def serde_option(command: F) -> F:
    """Add ``--serde``; :func:`opened` finds it, the command itself does not see it."""

    def keep(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[_SERDE] = value

    return click.option(
        "--serde",
        envvar="RUNTIME_PERSIST_SERDE",
        metavar="MODULE:ATTRIBUTE",
        expose_value=False,
        callback=keep,
        help="Serializer of the values, or a function that makes it: of an encrypted database (or "
        "RUNTIME_PERSIST_SERDE).",
    )(command)


def bundle_option(command: F) -> F:
    """Add ``--bundle``."""
    return click.option(
        "--bundle",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="Look into this file of `bundle export` instead of a database.",
    )(command)


def by_option(command: F) -> F:
    """Add ``--by``."""
    return click.option("--by", default=None, metavar="NAME", help="Who says it; recorded.")(command)


def database_options(command: F) -> F:
    """Add ``--url``, ``--space``, ``--schema`` and ``--serde``."""
    return url_option(space_option(schema_option(serde_option(command))))


@contextmanager
def opened(url: str, space: str, schema: str | None, **options: Any) -> Iterator[Runtime]:
    """Open a runtime for one command, with the serializer that ``--serde`` names."""
    reference = serde_reference()
    serde = None if reference is None else load_serde(reference)
    with Runtime.open(url, space=space, schema=schema, serde=serde, **options) as runtime:
        yield runtime


def serde_reference() -> str | None:
    """Return what ``--serde`` names (None: nothing)."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_SERDE)


def load_serde(reference: str) -> SerializerProtocol:
    """Return the serializer that ``module:attribute`` names, or that the function there makes.

    Raises:
        InvalidInput: no such module or attribute, or it is no serializer.

    """
    found = load_attribute(reference)
    if not isinstance(found, SerializerProtocol) and callable(found):
        found = found()
    if not isinstance(found, SerializerProtocol):
        msg = f"{reference} must be a serializer (dumps_typed, loads_typed) or make one, not {type(found).__name__}"
        raise InvalidInput(msg, serde=reference)
    return found


def echo_json(value: Any) -> None:
    """Print a value as JSON; what JSON has no form for is printed as text."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def parsed_json(text: str, option: str) -> Any:
    """Return the value of an option's JSON (raises InvalidInput)."""
    try:
        return json.loads(text)
    except ValueError as error:
        msg = f"{option} is not JSON: {error}"
        raise InvalidInput(msg, option=option) from error
