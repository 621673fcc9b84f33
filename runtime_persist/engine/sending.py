"""Large content goes ahead of the command that refers to it, in statements of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.commands.store_content import StoreContent
from runtime_persist.contentstore.parcel import Part

if TYPE_CHECKING:
    from runtime_persist.contentstore import ContentWriter
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow


def send_ahead(engine: Engine, writer: ContentWriter) -> Flow[None]:
    """Store the content of a command that brings much of it; what brings little goes with its command.

    Until that command is committed nothing refers to it, so nothing is visible.
    """
    for step in writer.ahead():
        if not isinstance(step, Part):
            yield step  # somebody else is storing the same
            continue
        try:
            future = engine.coordinator.commit(
                StoreContent(
                    space=engine.space,
                    command_id=f"content:{step.blobs[0].address.hex()}",
                    owner=writer.owner,
                    blobs=step.blobs,
                ),
            )
        except BaseException:
            step.settled(None)
            raise
        # Noted where it is committed, not where the caller goes on: who waits for it may be what keeps the caller.
        future.add_done_callback(step.settled)
        yield future
