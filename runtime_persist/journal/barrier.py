"""The durability barrier: an operation begins only when the checkpoint its task runs on is stored.

Only then is its identity stable: after a crash the same checkpoint gives the same task ids (contract §4.4). The
wait cannot deadlock: LangGraph submits that put before the task, and its executors are first in, first out. On an
event loop that is not enough: a put may still wait there for the one before it, for ever while an operation blocks
the loop. Such a call is refused at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from runtime_persist.errors import CheckpointNotDurable
from runtime_persist.model import limits

if TYPE_CHECKING:
    from concurrent.futures import Future

    from runtime_persist.engine import Flow, OwnedRun


def wait_durable(
    owned: OwnedRun,
    checkpoint_id: str,
    name: str,
    seconds: float = limits.BARRIER_SECONDS,
) -> Flow[None]:
    """Wait until a checkpoint is committed.

    Raises:
        CheckpointNotDurable: it was not within ``seconds`` (a subgraph compiled with checkpointer=False never
            stores any).
        RuntimePersistError: what went wrong with the run meanwhile.

    """
    durable = owned.when_durable(checkpoint_id)
    if durable.done():
        yield durable
        return
    if (yield owned.stored(checkpoint_id)):
        owned.durable(checkpoint_id)
        return
    timer = threading.Timer(seconds, _give_up, (durable, owned, checkpoint_id, name, seconds))
    timer.daemon = True
    timer.start()
    try:
        yield durable
    finally:
        timer.cancel()


def check_loop(owned: OwnedRun, checkpoint_id: str, name: str) -> Flow[None]:
    """Refuse a blocking call on the event loop that has yet to send the checkpoint it would wait for.

    Raises:
        CheckpointNotDurable: it would wait for its own caller.

    """
    if owned.is_sent(checkpoint_id):
        return
    if (yield owned.stored(checkpoint_id)):
        owned.durable(checkpoint_id)
        return
    msg = (
        f"operation {name!r} was not started: it blocks the event loop that has yet to store checkpoint "
        f"{checkpoint_id} it runs on; make it async (async def), call it by asyncio.to_thread, or call the graph with "
        'durability="sync" (a subgraph with checkpointer=False stores none)'
    )
    raise CheckpointNotDurable(msg, checkpoint_id=checkpoint_id)


def _give_up(durable: Future[bool], owned: OwnedRun, checkpoint_id: str, name: str, seconds: float) -> None:
    owned.forget_waiting(checkpoint_id, durable)
    if durable.set_running_or_notify_cancel():
        msg = (
            f"operation {name!r} was not started: checkpoint {checkpoint_id} it runs on was not stored within "
            f"{seconds:g} s. A subgraph with checkpointer=False stores none"
        )
        durable.set_exception(CheckpointNotDurable(msg, checkpoint_id=checkpoint_id))
