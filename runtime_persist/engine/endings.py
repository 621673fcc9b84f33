"""How an attempt ended, as its runtime tells it: settled by whoever holds the lease, once it is proved to have stopped.

A graph that a worker executes itself is settled by :mod:`runtime_persist.engine.settling`, in the process that knows
it. A child process cannot prove that it has ended, so it only tells: :class:`Told` has the same functions.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.store_content import StoreContent
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.engine import payloads, requests, settling
from runtime_persist.engine.dispatch import leased
from runtime_persist.errors import InvalidInput, RunStopping
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.model.states import RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.engine.owned import OwnedRun
    from runtime_persist.model.payload import Blob

FINISHED, FAILED, WAITING, DRAINED, CANCELLED = "finished", "failed", "waiting", "drained", "cancelled"
LEFT = "left"
_KINDS = frozenset({FINISHED, FAILED, WAITING, DRAINED, CANCELLED, LEFT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended.

    Attributes:
        kind: ``finished`` (``data`` is the result), ``failed`` (``code``, ``summary``, ``repeatable``), ``waiting``
            (for a person: ``reason``, and ``data`` is the question), ``drained`` (at its last step), ``cancelled``
            (``reason``) or ``left`` (``code``, ``summary``: the database could not be used, which is no end of a run).
        data: encoded payload reference; the content it refers to is stored.
        reason: why it waits or was cancelled.
        code: stable name of a failure.
        summary: a few words about a failure, without what must not be stored.
        repeatable: a further attempt could end differently.

    """

    kind: str
    data: bytes | None = None
    reason: str = ""
    code: str = ""
    summary: str = ""
    repeatable: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is sent to another process."""
        return asdict(self)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Ending:
        """Return what another process sent (raises InvalidInput)."""
        try:
            found = cls(**said)
        except TypeError as error:
            msg = f"this is no ending of an attempt: {error}"
            raise InvalidInput(msg) from error
        if found.kind not in _KINDS:
            msg = f"an attempt does not end as {found.kind!r}"
            raise InvalidInput(msg)
        return found


def broken(error: BaseException) -> Ending:
    """Return the ending of an attempt that an error ended."""
    code, summary, repeatable = settling.failure(error)
    kind = LEFT if settling.is_of_the_database(error) else FAILED
    return Ending(kind=kind, code=code, summary=summary, repeatable=repeatable)


def settle(engine: Engine, owned: OwnedRun, ending: Ending) -> Flow[str]:
    """End the attempt as its runtime told, and release the lease; return the run's status.

    One that was left is not ended: its lease runs out, and it is taken over.

    Raises:
        Fenced: the lease is not ours any more.
        DomainsOpen: a domain of the attempt is not revoked: it may still be writing.

    """
    engine.heartbeats.remove(owned)
    if ending.kind == LEFT:
        return RunStatus.RUNNING.value
    if ending.kind in {WAITING, DRAINED}:
        reason = "drain" if ending.kind == DRAINED else ending.reason
        try:
            receipt: CommitReceipt = yield owned.coordinator.commit(
                YieldAttempt(
                    command_id=new_id(), reason=reason, question=ending.data, owner=engine.owner, **leased(owned)
                ),
            )
        except RunStopping:  # asked for meanwhile: it ends instead
            return (yield from settle(engine, owned, Ending(kind=CANCELLED, reason=owned.stop_reason or "stop")))
        return str(receipt.result["status"])
    receipt = yield owned.coordinator.commit(_end(engine, owned, ending))
    return str(receipt.result["status"])


def _end(engine: Engine, owned: OwnedRun, ending: Ending) -> FinalizeRun | FailAttempt:
    lease = owned.lease
    base: dict[str, Any] = {
        **requests.thread_of(engine, lease.thread_id),
        "command_id": new_id(),
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "actor": f"worker:{lease.worker_id}",
    }
    if ending.kind == FINISHED and ending.data is not None:
        return FinalizeRun.succeeded(result=ending.data, owner=engine.owner, blobs=(), **base)
    if ending.kind == FAILED:
        return FailAttempt(
            error_code=ending.code,
            error_summary=ending.summary,
            repeatable=ending.repeatable,
            chance=random.random(),  # noqa: S311 (spreads retries)
            **base,
        )
    return FinalizeRun.cancelled(reason=ending.reason or "stop", **base)


class Ends(Protocol):
    """What settles an attempt; :mod:`runtime_persist.engine.settling` does it in the database."""

    def finish(self, engine: Engine, owned: OwnedRun, value: Any) -> Flow[str]:
        """End the run with a result."""

    def fail_attempt(self, engine: Engine, owned: OwnedRun, error: BaseException) -> Flow[str]:
        """End the attempt as failed."""

    def wait_for_person(self, engine: Engine, owned: OwnedRun, reason: str, question: Any) -> Flow[str]:
        """Leave the run waiting with a question."""

    def drain(self, engine: Engine, owned: OwnedRun) -> Flow[str]:
        """Queue the run again at its last checkpoint."""

    def cancel(self, engine: Engine, owned: OwnedRun, reason: str) -> Flow[str]:
        """End the run as cancelled."""


class Told:
    """Remembers how the attempt ended instead of ending it.

    Attributes:
        ending: the first thing it was told (None: nothing yet).

    """

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.ending: Ending | None = None

    def finish(self, engine: Engine, owned: OwnedRun, value: Any) -> Flow[str]:
        """Note a result; its content is stored, and nothing refers to it before the run ends."""
        return self._note(Ending(kind=FINISHED, data=(yield from _stored(engine, owned, value))))

    def fail_attempt(self, _engine: Engine, _owned: OwnedRun, error: BaseException) -> Flow[str]:
        """Note a failure."""
        yield from ()
        return self._note(broken(error))

    def wait_for_person(self, engine: Engine, owned: OwnedRun, reason: str, question: Any) -> Flow[str]:
        """Note a question; its content is stored."""
        return self._note(Ending(kind=WAITING, reason=reason, data=(yield from _stored(engine, owned, question))))

    def drain(self, _engine: Engine, _owned: OwnedRun) -> Flow[str]:
        """Note that it stopped at a step."""
        yield from ()
        return self._note(Ending(kind=DRAINED))

    def cancel(self, _engine: Engine, _owned: OwnedRun, reason: str) -> Flow[str]:
        """Note that it was cancelled."""
        yield from ()
        return self._note(Ending(kind=CANCELLED, reason=reason))

    def _note(self, ending: Ending) -> str:
        if self.ending is None:
            self.ending = ending
        return self.ending.kind


def _stored(engine: Engine, owned: OwnedRun, value: Any) -> Flow[bytes]:
    """Store the content of a value, and return the reference to it."""
    data, blobs = payloads.encode(engine, owned.serde, value)
    part: list[Blob] = []
    for number, blob in enumerate(blobs, 1):
        part.append(blob)
        if number == len(blobs) or sum(len(one.content) for one in part) >= limits.CONTENT_PART_BYTES_MAX:
            command_id = f"content:{part[0].address.hex()}"
            yield engine.coordinator.commit(
                StoreContent(space=engine.space, command_id=command_id, owner=engine.owner, blobs=tuple(part)),
            )
            part = []
    return data
