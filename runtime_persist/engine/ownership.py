"""How a process comes to own a run: flows over the commands, shared by L1, leases and workers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runtime_persist.commands.claim_next import ClaimNext
from runtime_persist.commands.claim_run import ClaimRun
from runtime_persist.commands.continue_owned_run import ContinueOwnedRun
from runtime_persist.commands.start_owned_run import StartOwnedRun
from runtime_persist.engine.domains import commit_taking
from runtime_persist.engine.holding import hold, renew
from runtime_persist.engine.owned import OwnedRun
from runtime_persist.engine.payloads import encode
from runtime_persist.engine.requests import request, thread_of
from runtime_persist.engine.settling import give_up
from runtime_persist.engine.tracing import starting
from runtime_persist.errors import (
    RuntimePersistError,
)
from runtime_persist.model.ids import new_id
from runtime_persist.model.lease import MANUAL_GRAPH, ExecutionLease
from runtime_persist.model.states import Control

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langgraph.checkpoint.serde.base import SerializerProtocol

    from runtime_persist.commands.parts.run_request import RunRequest
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.plan import Row


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


# --- leases in a user's hands ---------------------------------------------------------------------------------------


def take(engine: Engine, thread_id: str) -> Flow[OwnedRun]:
    """Start, claim and activate a run without a graph: the user writes under its lease."""
    serde = JsonPlusSerializer()
    asked = request(engine, serde, MANUAL_GRAPH, None, thread_id=thread_id)
    return (yield from start(engine, serde, asked, thread_id))
