"""How a process comes to own a run, and how it lets go: flows over the commands, shared by L1, leases and workers."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist.commands.claim_next import ClaimNext
from runtime_persist.commands.claim_run import ClaimRun
from runtime_persist.commands.continue_owned_run import ContinueOwnedRun
from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.parts.run_request import RunRequest
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.start_owned_run import StartOwnedRun
from runtime_persist.commands.start_run import StartRun
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.engine.dispatch import leased
from runtime_persist.engine.domains import commit_taking
from runtime_persist.engine.holding import hold, renew
from runtime_persist.engine.owned import OwnedRun
from runtime_persist.engine.payloads import dumped, loaded
from runtime_persist.engine.tracing import starting
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
from runtime_persist.model.keys import fingerprint
from runtime_persist.model.lease import MANUAL_GRAPH, ExecutionLease
from runtime_persist.model.payload import Blob, PayloadRef
from runtime_persist.model.states import Control
from runtime_persist.model.text import redacted, said_by, storable
from runtime_persist.queries import checkpoints as checkpoint_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.commands.fork_run import ForkRun
    from runtime_persist.commands.retry_run import RetryRun
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.model.budgets import Budget
    from runtime_persist.model.retry import RetryPolicy
    from runtime_persist.plan import Row


_ALWAYS_THE_SAME = {"invalid", "corrupt", "bug"}
"""Kinds of errors that a further attempt would only meet again."""


def encode(engine: Engine, serde: SerializerProtocol, value: Any) -> tuple[bytes, tuple[Blob, ...]]:
    """Return a value as an encoded payload reference, and the content it refers to."""
    writer = engine.content.writer(everything=True)
    kind, content = dumped(serde, value, "the value", engine.max_value_bytes)
    ref = writer.put(kind, content, limits.INLINE_ROW_BYTES_MAX)
    return ref.encoded(), tuple(writer.blobs())


def decode(engine: Engine, serde: SerializerProtocol, data: bytes, where: str) -> Flow[Any]:
    """Return the value of an encoded payload reference (raises CheckpointCorrupt)."""
    ref = PayloadRef.decoded(data)
    content = engine.content.reader()
    content.want([ref])
    if content.missing():
        yield engine.coordinator.read("read_content", lambda: checkpoint_queries.fill(engine.space, content))
    return loaded(serde, ref.type, content.content(ref, where), where)


def request(
    engine: Engine,
    serde: SerializerProtocol,
    graph: str,
    value: Any,
    *,
    thread_id: str | None,
    idempotency_key: str | None = None,
    start_checkpoint_id: str | None = None,
    retry_of_run_id: str | None = None,
    graph_version: str | None = None,
    retry: RetryPolicy | None = None,
    retry_policy: str | None = None,
    deadline: float | None = None,
    priority: int = 0,
    scope: str | None = None,
    budget: Budget | None = None,
    more: Sequence[str] = (),
) -> RunRequest:
    """Return a run request; its fingerprint covers what the caller said, not what was made up for it.

    ``retry`` and ``deadline`` (seconds) are the caller's; ``graph_version`` and ``retry_policy`` those of the graph as
    it is registered; ``more`` is what the caller said that is no part of the request itself.
    """
    data, blobs = encode(engine, serde, value)
    said = [graph, thread_id or "", start_checkpoint_id or "", retry_of_run_id or ""]
    if retry is not None or deadline is not None:
        said += [retry.encoded() if retry else "", "" if deadline is None else repr(deadline)]
    if priority or scope is not None:  # what is not said leaves the fingerprints of keys that were used before as is
        said += [f"priority {priority}", f"scope {scope or ''}"]
    if budget is not None:
        said.append(f"budget {budget.limits()}")
    said += more
    return RunRequest(
        run_id=new_id(),
        graph=graph,
        input=data,
        fingerprint=fingerprint(*(part.encode() for part in said), data),
        owner=engine.owner,
        idempotency_key=idempotency_key,
        start_checkpoint_id=start_checkpoint_id,
        retry_of_run_id=retry_of_run_id,
        graph_version=graph_version,
        retry_policy=retry_policy if retry is None else retry.encoded(),
        deadline_in_us=None if deadline is None else round(deadline * 1_000_000),
        priority=priority,
        scope=scope,
        budget=budget,
        blobs=blobs,
    )


def thread_of(engine: Engine, thread_id: str) -> dict[str, Any]:
    """Return the fields of a thread command."""
    return {
        "space": engine.space,
        "thread_id": thread_id,
        "thread_hash": engine.coordinator.keys.thread_hash(thread_id),
    }


def queue(
    engine: Engine,
    asked: RunRequest,
    thread_id: str,
    command: type[StartRun | ForkRun | RetryRun] = StartRun,
    **fields: Any,
) -> Flow[CommitReceipt]:
    """Queue a run for a worker: by which command, and what that says besides the request.

    A key is one of the space, whichever command it came with.
    """
    key = asked.idempotency_key
    command_id = f"start_run:{key}" if key is not None else new_id()
    with starting(asked) as traced:
        receipt: CommitReceipt = yield engine.coordinator.commit(
            command(command_id=command_id, actor="user", request=traced, **thread_of(engine, thread_id), **fields),
        )
    return receipt


def start(engine: Engine, serde: SerializerProtocol, asked: RunRequest, thread_id: str) -> Flow[OwnedRun]:
    """Start a run that this process executes itself."""
    sent = time.monotonic()
    with starting(asked) as traced:
        receipt = yield from commit_taking(
            engine,
            StartOwnedRun(
                command_id=new_id(),
                actor=f"caller:{engine.worker_id}",
                request=traced,
                worker_id=engine.worker_id,
                attempt_id=new_id(),
                ttl_us=engine.ttl_us,
                **thread_of(engine, thread_id),
            ),
        )
    owned = own(engine, serde, thread_id, asked.graph, receipt.result, sent)
    limited, said = asked.budget, receipt.result  # a retry has the budget of what it retries, too
    owned.budgeted = said.get("budgeted", limited is not None)
    owned.limits_invocations = said.get(
        "limits_invocations", limited is not None and limited.per_invocation is not None
    )
    owned.traceparent = traced.traceparent
    yield from hold(engine, owned)
    return owned


def proceed(
    engine: Engine,
    serde: SerializerProtocol,
    thread_id: str,
    graph: str,
    answer: Any = None,
) -> Flow[OwnedRun]:
    """Continue the thread's open run with a new attempt of this process (raises NothingToClaim, ThreadOwned)."""
    data, blobs = encode(engine, serde, answer) if answer is not None else (None, ())
    sent = time.monotonic()
    receipt = yield from commit_taking(
        engine,
        ContinueOwnedRun(
            command_id=new_id(),
            graph=graph,
            actor=f"caller:{engine.worker_id}",
            worker_id=engine.worker_id,
            attempt_id=new_id(),
            ttl_us=engine.ttl_us,
            answer=data,
            owner=engine.owner,
            blobs=blobs,
            **thread_of(engine, thread_id),
        ),
    )
    owned = own(engine, serde, thread_id, graph, receipt.result, sent)
    yield from hold(engine, owned)
    return owned


def own(
    engine: Engine,
    serde: SerializerProtocol,
    thread_id: str,
    graph: str,
    taken: Mapping[str, Any],
    sent: float,
) -> OwnedRun:
    """Return the owned run of a taken lease; its heartbeats begin.

    ``sent``: monotonic seconds before its command was sent. The lease counts from no earlier moment, so what is known
    of it here never outlasts it, however long the answer took.
    """
    lease = ExecutionLease(
        space=engine.space,
        run_id=taken["run_id"],
        thread_id=thread_id,
        epoch=taken["epoch"],
        worker_id=engine.worker_id,
        attempt_id=taken["attempt_id"] or "",
    )
    owned = OwnedRun(
        engine.coordinator,
        lease,
        graph=graph,
        serde=serde,
        content=engine.content,
        ttl=engine.lease_ttl,
        notifications=engine.notifications,
        max_value_bytes=engine.max_value_bytes,
    )
    owned.renewed_at = sent
    if taken.get("control", Control.OPEN) == Control.OPEN:
        owned.ends_in(taken.get("deadline_in_us"))
    engine.heartbeats.add(owned)
    return owned


def started_within(engine: Engine, owned: OwnedRun, outer: OwnedRun | None) -> Flow[None]:
    """Note that a node of ``outer`` (None: no node) started this run, and renew ``outer``: its lease ends last.

    When the process dies, whoever takes ``outer`` over runs that node again, and finds this run's thread free.

    Raises:
        LeaseLost, LeaseExpired: ``outer`` is somebody else's; this run has ended as failed.

    """
    if outer is None:
        return
    owned.within = outer
    try:
        yield from renew(outer)
    except RuntimePersistError as error:
        yield from give_up(engine, owned, error)
        raise


def claim(
    engine: Engine,
    serde: SerializerProtocol,
    candidate: Row,
    versions: tuple[str, ...] | None = None,
    instance_id: str | None = None,
) -> Flow[tuple[OwnedRun, Mapping[str, Any]]]:
    """Claim a run by name (raises NothingToClaim); it may not be started before its lease is activated.

    ``versions`` are those of the graph's definition that the worker may execute (None: all); ``instance_id`` names
    the instance whose slot it takes (None: only for a run that is being stopped).
    """
    sent = time.monotonic()
    receipt = yield engine.coordinator.commit(
        ClaimRun(
            command_id=new_id(),
            actor=f"worker:{engine.worker_id}",
            run_id=candidate["run_id"],
            worker_id=engine.worker_id,
            attempt_id=new_id(),
            ttl_us=engine.ttl_us,
            versions=versions,
            instance_id=instance_id,
            **thread_of(engine, candidate["thread_id"]),
        ),
    )
    taken = {**receipt.result, **{name: candidate[name] for name in ("run_id", "thread_id", "graph")}}
    return own(engine, serde, candidate["thread_id"], candidate["graph"], taken, sent), taken


def claim_next(
    engine: Engine,
    serde: SerializerProtocol,
    graph: str,
    kind: str,
    *,
    versions: tuple[str, ...],
    instance_id: str,
    served_no: int | None,
    others: tuple[str, ...],
    waits: bool,
    starts: bool = False,
) -> Flow[tuple[OwnedRun, Mapping[str, Any]]]:
    """Claim a graph's next run of a kind for an instance; see :class:`runtime_persist.commands.claim_next.ClaimNext`.

    It may not be started before its lease is activated; with ``starts`` it may be when the answer has ``started``, once
    ``holding.hold`` was asked.
    """
    sent = time.monotonic()
    receipt = yield engine.coordinator.commit(
        ClaimNext(
            space=engine.space,
            command_id=new_id(),
            actor=f"worker:{engine.worker_id}",
            graph=graph,
            kind=kind,
            worker_id=engine.worker_id,
            instance_id=instance_id,
            attempt_id=new_id(),
            ttl_us=engine.ttl_us,
            versions=versions,
            served_no=served_no,
            others=others,
            waits=waits,
            starts=starts,
        ),
    )
    taken = receipt.result
    owned = own(engine, serde, taken["thread_id"], graph, taken, sent)
    if taken["started"] and receipt.rows:
        (owned.row,) = receipt.rows
    return owned, taken


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


# --- leases in a user's hands ---------------------------------------------------------------------------------------


def take(engine: Engine, thread_id: str) -> Flow[OwnedRun]:
    """Start, claim and activate a run without a graph: the user writes under its lease."""
    serde = JsonPlusSerializer()
    asked = request(engine, serde, MANUAL_GRAPH, None, thread_id=thread_id)
    return (yield from start(engine, serde, asked, thread_id))


def release(engine: Engine, owned: OwnedRun) -> Flow[None]:
    """End a lease's run as succeeded."""
    yield from finish(engine, owned, None)


def give_up(engine: Engine, owned: OwnedRun, error: BaseException) -> Flow[None]:
    """End a lease's run as failed; when it is not ours any more there is nothing to end."""
    try:
        yield from fail(engine, owned, getattr(error, "code", type(error).__name__), str(error))
    except (Fenced, RuntimePersistError):
        engine.heartbeats.remove(owned)
