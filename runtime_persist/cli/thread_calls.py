"""thread calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runtime_persist.adapters.workflow import RawSerializer
from runtime_persist.adapters.workflow.values import raw_view
from runtime_persist.cli.options import bundle_option, database_options, echo_json, json_option, opened
from runtime_persist.cli.screen import show as on_screen
from runtime_persist.engine import run
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.render import table
from runtime_persist.inspector.thread import load_value
from runtime_persist.inspector.thread_records import value_of
from runtime_persist.inspector.unanswered import MESSAGES, unanswered

if TYPE_CHECKING:
    from pathlib import Path


@click.command("calls")
@click.argument("thread_id")
@click.option("--channel", default=MESSAGES, show_default=True, metavar="NAME", help="Where the messages are.")
@click.option("--ns", default="", help="Of this namespace (of a subgraph).")
@click.option("--checkpoint", default=None, metavar="ID", help="As of this checkpoint (default: the newest).")
@bundle_option
@database_options
@json_option
def calls(
    thread_id: str, channel: str, ns: str, checkpoint: str | None, bundle: Path | None,
    url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """List tool calls in a thread's messages that no tool has answered.

    `dangling`: messages have come since, so models refuse to go on; else going on calls the tools.
    """
    place: Any = {"ns": ns, "checkpoint_id": checkpoint}
    if bundle is not None:
        messages = value_of(open_bundle(bundle), RawSerializer(), thread_id, channel, **place)
    else:
        with opened(url, space, schema, auto_setup=False) as runtime:
            raw = raw_view(runtime.checkpointer.serde)
            messages = run(load_value(runtime.engine, raw, thread_id, channel, **place))
    found = unanswered(messages)
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    made = table(f"calls without an answer ({len(found)})", "message", "tool", "id", "")
    for one in found:
        said = "dangling: other messages have come since" if one.dangling else "its tools come next"
        made.add_row(str(one.position), one.name, one.tool_call_id, said)
    on_screen(made)
