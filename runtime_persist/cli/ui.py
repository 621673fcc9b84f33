"""ui [URL]."""

from __future__ import annotations

import importlib
import json
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runtime_persist.cli.options import database_options, json_option, opened
from runtime_persist.errors import InvalidInput, MissingDependency

if TYPE_CHECKING:
    from types import ModuleType

_NEEDED = frozenset({"starlette", "uvicorn", "jinja2", "markupsafe"})


def pages(name: str) -> ModuleType:
    """Return a module of the pages (raises MissingDependency: without their extra)."""
    try:
        return importlib.import_module(f"runtime_persist.ui.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        msg = f"the pages need {error.name}: pip install 'runtime-persist[ui]'"
        raise MissingDependency(msg) from error


@click.command("ui")
@click.argument("database", required=False, metavar="[URL]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; another one needs a token.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8_321, show_default=True, help="Port (0: a free one).")
@click.option(
    "--allow-host", "allowed", multiple=True, metavar="NAME",
    help="Name that the pages are reached by besides this machine's own; with its port if that is another one.",
)  # fmt: skip
@click.option("--allow-actions", is_flag=True, help="Let who has the token cancel, answer, retry …")
@click.option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="File with the token (or RUNTIME_PERSIST_UI_TOKEN; without either one is made and printed).",
)  # fmt: skip
@database_options
@json_option
def ui(
    database: str | None, host: str, port: int, allowed: tuple[str, ...], allow_actions: bool, token_file: Path | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Serve pages to look at runs, in a browser on this machine; read-only, unless --allow-actions is said."""
    serving, security = pages("serving"), pages("security")
    private = not serving.is_loopback(host)
    token, made = _token(token_file) if allow_actions or private else (None, False)
    sock = serving.listen(host, port)
    try:
        bound = sock.getsockname()[1]
        access = security.Access(
            hosts=serving.names(host, bound, allowed), actions=allow_actions, token=token, private=private
        )
        shown = f"[{host}]" if ":" in host else host
        said = {"url": f"http://{shown}:{bound}/", "actions": allow_actions, "token": token if made else None}
        with opened(database or url, space, schema, auto_setup=False) as runtime:
            serving.serve(runtime, access, sock, lambda: _ready(said, as_json=as_json))
    finally:
        sock.close()


def _token(file: Path | None) -> tuple[str, bool]:
    """Return the token, and whether it was made here."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip(), False
        except (OSError, UnicodeDecodeError) as error:
            msg = f"the token cannot be read from {file}: {getattr(error, 'strerror', None) or error}"
            raise InvalidInput(msg, path=str(file)) from error

    said = os.environ.get("RUNTIME_PERSIST_UI_TOKEN", "").strip()
    return (said, False) if said else (secrets.token_hex(32), True)


def _ready(said: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(said))
    else:
        click.echo(f"{said['url']}  ({'actions with the token' if said['actions'] else 'read-only'})")
        if said["token"]:
            click.echo(f"token: {said['token']}")
    sys.stdout.flush()
