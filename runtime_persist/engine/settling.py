"""How an owned run ends, waits or goes back: flows over the commands that let its lease go."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.engine.dispatch import leased
from runtime_persist.engine.payloads import encode
from runtime_persist.engine.requests import thread_of
from runtime_persist.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    Fenced,
    OutcomeUnknown,
    RuntimePersistError,
    StoreBusy,
)
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.text import redacted, said_by, storable

if TYPE_CHECKING:
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.engine.owned import OwnedRun


_ALWAYS_THE_SAME = {"invalid", "corrupt", "bug"}
"""Kinds of errors that a further attempt would only meet again."""


def finish(engine: Engine, owned: OwnedRun, value: Any) -> Flow[str]:
    """End the run with a result and release the lease; return its final status."""
    data, blobs = encode(engine, owned.serde, value)
    command = FinalizeRun.succeeded(result=data, owner=engine.owner, blobs=blobs, **_ending(engine, owned))
    return (yield from _end(engine, owned, command))


def fail(engine: Engine, owned: OwnedRun, code: str, summary: str) -> Flow[str]:
    """End the run as failed and release the lease."""
    text = storable(summary, limits.ERROR_TEXT_CHARS_MAX)
    command = FinalizeRun.failed(error_code=code, error_summary=text, **_ending(engine, owned))
    return (yield from _end(engine, owned, command))


def fail_attempt(engine: Engine, owned: OwnedRun, error: BaseException) -> Flow[str]:
    """End the attempt as failed: its run is attempted again as its policy says, or has failed; return its status."""
    code, summary, repeatable = failure(error)
    engine.heartbeats.remove(owned)
    receipt: CommitReceipt = yield owned.coordinator.commit(
        FailAttempt(
            error_code=code,
            error_summary=summary,
            repeatable=repeatable,
            chance=random.random(),  # noqa: S311 (spreads retries)
            **_ending(engine, owned),
        ),
    )
    return str(receipt.result["status"])


def failure(error: BaseException) -> tuple[str, str, bool]:
    """Return what is stored of an error: its code, a summary, and whether a further attempt could end differently."""
    code, said, repeatable = type(error).__name__, said_by(error), True
    if isinstance(error, RuntimePersistError):
        full = isinstance(error, DatabaseUnavailable)  # a disk that was full, a file that was away: not for ever
        code, said, repeatable = error.code, error.message, full or error.kind not in _ALWAYS_THE_SAME
    return code, storable(redacted(said), limits.ERROR_TEXT_CHARS_MAX), repeatable


def is_of_the_database(error: BaseException | None) -> bool:
    """Return whether it is the database that could not be used: that says nothing about the run it came to."""
    return isinstance(error, StoreBusy | ConnectionLost | OutcomeUnknown | DatabaseUnavailable)


def give_back(engine: Engine, owned: OwnedRun) -> Flow[str]:
    """Release a claim that nothing was started under; the run waits for the next claim as it did for this one."""
    engine.heartbeats.remove(owned)
    receipt: CommitReceipt = yield owned.coordinator.commit(ReleaseClaim(command_id=new_id(), **leased(owned)))
    return str(receipt.result["status"])


def cancel(engine: Engine, owned: OwnedRun, reason: str) -> Flow[str]:
    """End the run as cancelled and release the lease."""
    return (yield from _end(engine, owned, FinalizeRun.cancelled(reason=reason, **_ending(engine, owned))))


def wait_for_person(engine: Engine, owned: OwnedRun, reason: str, question: Any) -> Flow[str]:
    """Leave the run waiting with a question, and release the lease."""
    data, blobs = encode(engine, owned.serde, question)
    engine.heartbeats.remove(owned)
    receipt: CommitReceipt = yield owned.coordinator.commit(
        YieldAttempt(
            command_id=new_id(),
            reason=reason,
            question=data,
            owner=engine.owner,
            blobs=blobs,
            ends_domains=owned.ends_domains,
            **leased(owned),
        ),
    )
    return str(receipt.result["status"])


def drain(engine: Engine, owned: OwnedRun) -> Flow[str]:
    """Queue the run again at its last checkpoint, and release the lease."""
    engine.heartbeats.remove(owned)
    receipt: CommitReceipt = yield owned.coordinator.commit(
        YieldAttempt(command_id=new_id(), reason="drain", ends_domains=owned.ends_domains, **leased(owned)),
    )
    return str(receipt.result["status"])


def release(engine: Engine, owned: OwnedRun) -> Flow[None]:
    """End a lease's run as succeeded."""
    yield from finish(engine, owned, None)


def give_up(engine: Engine, owned: OwnedRun, error: BaseException) -> Flow[None]:
    """End a lease's run as failed; when it is not ours any more there is nothing to end."""
    try:
        yield from fail(engine, owned, getattr(error, "code", type(error).__name__), str(error))
    except (Fenced, RuntimePersistError):
        engine.heartbeats.remove(owned)


def _ending(engine: Engine, owned: OwnedRun) -> dict[str, Any]:
    lease = owned.lease
    return {
        "command_id": new_id(),
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "actor": f"worker:{lease.worker_id}",
        "ends_domains": owned.ends_domains,
        **thread_of(engine, lease.thread_id),
    }


def _end(engine: Engine, owned: OwnedRun, command: FinalizeRun) -> Flow[str]:
    engine.heartbeats.remove(owned)
    receipt: CommitReceipt = yield owned.coordinator.commit(command)
    return str(receipt.result["status"])
