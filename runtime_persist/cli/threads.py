"""thread list | show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from runtime_persist.adapters.workflow import RawSerializer
from runtime_persist.adapters.workflow.values import raw_view
from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show as on_screen
from runtime_persist.engine import run
from runtime_persist.errors import InvalidInput
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.plain import plain
from runtime_persist.inspector.render_thread import thread as render
from runtime_persist.inspector.render_thread import threads_table
from runtime_persist.inspector.thread import HISTORY, load_bytes, load_thread, load_value
from runtime_persist.inspector.thread_records import bytes_of, load_threads, thread_of, threads_of, value_of

if TYPE_CHECKING:
    from pathlib import Path

    from runtime_persist.inspector.bundles import RecoveryBundle
    from runtime_persist.runtime import Runtime


@click.group("thread")
def thread_group() -> None:
    """Look at what threads hold."""


@thread_group.command("list")
@click.option("--after", default="", metavar="ID", help="Only threads whose ids come behind this one.")
@click.option("--limit", default=50, show_default=True, help="At most so many, in the order of their ids.")
@bundle_option
@database_options
@json_option
def list_threads(
    after: str, limit: int, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool
) -> None:
    """List threads with the runs that hold, or last held, them."""
    if bundle is not None:
        found = [row for row in threads_of(open_bundle(bundle)) if row.thread_id > after][:limit]
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_threads(runtime.engine, limit, after))
    if as_json:
        echo_json([row.model_dump() for row in found])
    else:
        on_screen(threads_table(found))


@thread_group.command()
@click.argument("thread_id")
@click.option("--ns", default=None, help="Only this namespace (of a subgraph); '' is the thread's own.")
@click.option("--checkpoint", default=None, metavar="ID", help="As of this checkpoint (default: the newest).")
@click.option("--history", default=HISTORY, show_default=True, help="Compare with so many checkpoints back.")
@click.option("--channel", default=None, metavar="NAME", help="Load this channel, and print what is in it as JSON.")
@click.option(
    "--bytes", "as_bytes", is_flag=True, help="Print the channel's bytes as they are stored, secrets included."
)
@click.option("--show-secrets", is_flag=True, help="Print SecretStr values of the channel in the clear.")
@bundle_option
@database_options
@json_option
def show(
    thread_id: str, ns: str | None, checkpoint: str | None, history: int, channel: str | None, as_bytes: bool,
    show_secrets: bool, bundle: Path | None, url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the channels of a thread by size, which of them grew, and its pending writes.

    No value is loaded unless --channel asks for it, and then no class is needed: objects are shown as type and fields.
    """
    if channel is None and (as_bytes or show_secrets):
        msg = "--bytes and --show-secrets are about one channel: name it with --channel"
        raise InvalidInput(msg)
    file = None if bundle is None else open_bundle(bundle)
    if channel is not None:
        place: dict[str, Any] = {"ns": ns or "", "checkpoint_id": checkpoint}
        if file is not None:
            _channel_of(file, thread_id, channel, place, as_bytes, show_secrets)
            return
        with opened(url, space, schema, auto_setup=False) as runtime:
            _channel(runtime, thread_id, channel, place, as_bytes, show_secrets)
        return
    if file is not None:
        found = thread_of(file, thread_id, ns=ns, checkpoint_id=checkpoint, history=history)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            found = run(load_thread(runtime.engine, thread_id, ns=ns, checkpoint_id=checkpoint, history=history))
    if as_json:
        echo_json(found.model_dump())
    else:
        on_screen(render(found))


def _channel(
    runtime: Runtime, thread_id: str, channel: str, place: dict[str, Any], as_bytes: bool, secrets: bool
) -> None:
    engine = runtime.engine
    if as_bytes:
        _write(run(load_bytes(engine, thread_id, channel, **place)))
        return
    value = run(load_value(engine, raw_view(runtime.checkpointer.serde), thread_id, channel, **place))
    echo_json(plain(value, secrets=secrets))


def _channel_of(
    file: RecoveryBundle, thread_id: str, channel: str, place: dict[str, Any], as_bytes: bool, secrets: bool
) -> None:
    if as_bytes:
        _write(bytes_of(file, thread_id, channel, **place))
        return
    echo_json(plain(value_of(file, RawSerializer(), thread_id, channel, **place), secrets=secrets))


def _write(found: list[tuple[str, bytes]]) -> None:
    for _, data in found:
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
