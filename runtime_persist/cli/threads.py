"""thread show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console

from runtime_persist.adapters.workflow.values import raw_view
from runtime_persist.cli.options import database_options, echo_json, json_option, opened
from runtime_persist.engine import run
from runtime_persist.errors import InvalidInput
from runtime_persist.inspector.plain import plain
from runtime_persist.inspector.render_thread import thread as render
from runtime_persist.inspector.thread import HISTORY, load_bytes, load_thread, load_value

if TYPE_CHECKING:
    from runtime_persist.runtime import Runtime


@click.group("thread")
def thread_group() -> None:
    """Look at what threads hold."""


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
@database_options
@json_option
def show(
    thread_id: str, ns: str | None, checkpoint: str | None, history: int, channel: str | None, as_bytes: bool,
    show_secrets: bool, url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show the channels of a thread by size, which of them grew, and its pending writes.

    No value is loaded unless --channel asks for it, and then no class is needed: objects are shown as type and fields.
    """
    if channel is None and (as_bytes or show_secrets):
        msg = "--bytes and --show-secrets are about one channel: name it with --channel"
        raise InvalidInput(msg)
    with opened(url, space, schema, auto_setup=False) as runtime:
        if channel is not None:
            _channel(runtime, thread_id, channel, ns or "", checkpoint, as_bytes, show_secrets)
            return
        found = run(load_thread(runtime.engine, thread_id, ns=ns, checkpoint_id=checkpoint, history=history))
    if as_json:
        echo_json(found.model_dump())
    else:
        Console().print(render(found))


def _channel(
    runtime: Runtime, thread_id: str, channel: str, ns: str, checkpoint: str | None, as_bytes: bool, secrets: bool
) -> None:
    engine = runtime.engine
    if as_bytes:
        for _, data in run(load_bytes(engine, thread_id, channel, ns=ns, checkpoint_id=checkpoint)):
            sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    serde = raw_view(runtime.checkpointer.serde)
    value = run(load_value(engine, serde, thread_id, channel, ns=ns, checkpoint_id=checkpoint))
    echo_json(plain(value, secrets=secrets))
