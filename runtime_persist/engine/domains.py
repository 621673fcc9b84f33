"""Execution domains of an owned run: opened before they are used, revoked before the run goes on or ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime_persist.commands.block_takeover import BlockTakeover
from runtime_persist.commands.confirm_revocation import ConfirmRevocation
from runtime_persist.commands.open_domain import OpenDomain
from runtime_persist.commands.record_revocation import RecordRevocation
from runtime_persist.engine.flow import in_thread
from runtime_persist.errors import DomainsOpen, Fenced, IllegalTransition, InvalidInput
from runtime_persist.model import limits
from runtime_persist.model.domains import Domain, DomainState, Proof, Revoked, Unproved
from runtime_persist.model.ids import is_name, new_id
from runtime_persist.model.text import redacted, storable
from runtime_persist.queries import domains as domain_queries

if TYPE_CHECKING:
    from runtime_persist.commands.continue_owned_run import ContinueOwnedRun
    from runtime_persist.commands.start_owned_run import StartOwnedRun
    from runtime_persist.coordinator import CommitReceipt
    from runtime_persist.engine.core import Engine
    from runtime_persist.engine.flow import Flow
    from runtime_persist.engine.owned import OwnedRun


class StillOpen(NamedTuple):
    """A domain that could not be revoked, and why."""

    domain: Domain
    why: str


def open_domain(owned: OwnedRun, kind: str, handle: Mapping[str, Any], *, domain_id: str | None = None) -> Flow[str]:
    """Open a domain of the attempt, before it is used; return its id.

    Args:
        owned: the run; its lease must be active, and the run not stopping.
        kind: names the revoker.
        handle: how the revoker finds it: JSON-able, short, without secrets.
        domain_id: its id, when it had to be known before (None: a new one).

    Raises:
        InvalidInput: a kind or handle that cannot be stored; nothing was written.
        Fenced: the lease is not ours any more, or the run is being stopped: do not use the domain.

    """
    text = _encoded(kind, handle)
    made = domain_id or new_id()
    yield owned.coordinator.commit(
        OpenDomain(command_id=new_id(), domain_id=made, kind=kind, handle=text, **_leased(owned)),
    )
    return made


def close_domain(owned: OwnedRun, domain_id: str, saw: str, how: Proof = Proof.CLOSED) -> Flow[None]:
    """Record that a domain which this process opened can no longer write.

    It counts too when the lease is somebody else's meanwhile: it is what they wait for.

    Args:
        owned: the run.
        domain_id: from :func:`open_domain`.
        saw: how it is known, in a few words.
        how: the kind of proof.

    """
    said = _said(saw)
    try:
        yield owned.coordinator.commit(
            RecordRevocation(command_id=new_id(), domain_id=domain_id, how=how, saw=said, **_leased(owned)),
        )
    except Fenced:
        lease = owned.lease
        yield owned.coordinator.commit(
            ConfirmRevocation(
                space=lease.space,
                command_id=new_id(),
                actor=f"worker:{lease.worker_id}",
                run_id=lease.run_id,
                domain_id=domain_id,
                saw=said,
                how=how,
            ),
        )


def of_run(engine: Engine, run_id: str) -> Flow[list[Domain]]:
    """Read the domains of a run, oldest first."""
    rows = yield engine.coordinator.read("read_domains", lambda: domain_queries.of_run(engine.space, run_id))
    return [Domain.of(row) for row in rows]


def revoke_left(engine: Engine, owned: OwnedRun) -> Flow[list[StillOpen]]:
    """Revoke the run's open domains, whichever epoch opened them; return those that could not be.

    It is for a lease under which nothing runs: not yet, or not any more. The revokers run outside any transaction, each
    on a thread; what they proved is stored one by one.
    """
    left: list[StillOpen] = []
    for domain in (yield from of_run(engine, owned.lease.run_id)):
        if domain.state is DomainState.REVOKED:
            continue
        answer: Revoked | Unproved = yield from in_thread(partial(engine.revokers.revoke, domain))
        if isinstance(answer, Unproved):
            left.append(StillOpen(domain, answer.why))
        else:
            yield from close_domain(owned, domain.domain_id, answer.saw, answer.how)
    return left


def commit_taking(engine: Engine, command: StartOwnedRun | ContinueOwnedRun) -> Flow[CommitReceipt]:
    """Commit the command of an owned call; when domains of the thread's left run stand in its way, revoke them first.

    No claim is needed for that: the lease ran out, so nothing can be opened or committed under it any more.

    Raises:
        DomainsOpen: something could not be proved; nothing was taken.
        RuntimePersistError: what the command is refused for.

    """
    try:
        receipt: CommitReceipt = yield engine.coordinator.commit(command)
    except DomainsOpen as error:
        run_id = error.details["run_id"]
    else:
        return receipt
    left: list[StillOpen] = []
    for domain in (yield from of_run(engine, run_id)):
        if domain.state is DomainState.OPEN:
            answer: Revoked | Unproved = yield from in_thread(partial(engine.revokers.revoke, domain))
            if isinstance(answer, Unproved):
                left.append(StillOpen(domain, answer.why))
            else:
                yield from _confirm(engine, command.actor, domain, answer)
    if left:
        raise _unproved(run_id, left)
    receipt = yield engine.coordinator.commit(command)
    return receipt


def _confirm(engine: Engine, actor: str, domain: Domain, proof: Revoked) -> Flow[None]:
    yield engine.coordinator.commit(
        ConfirmRevocation(
            space=engine.space,
            command_id=new_id(),
            actor=actor,
            run_id=domain.run_id,
            domain_id=domain.domain_id,
            saw=_said(proof.saw),
            how=proof.how,
        ),
    )


def recover(engine: Engine, owned: OwnedRun) -> Flow[None]:
    """Revoke what older epochs left, for a lease that is recovering: it may be activated, or its run ended, then.

    Raises:
        DomainsOpen: something could not be proved. People are told (``run.takeover_blocked``), the lease is not renewed
            any more and runs out, and nothing is started.
        Fenced: the lease is not ours any more.

    """
    left = yield from revoke_left(engine, owned)
    if not left:
        return
    try:
        yield owned.coordinator.commit(BlockTakeover(command_id=new_id(), **_leased(owned)))
    except IllegalTransition:  # somebody has said meanwhile that they are gone
        return
    engine.heartbeats.remove(owned)
    raise _unproved(owned.lease.run_id, left)


def _unproved(run_id: str, left: list[StillOpen]) -> DomainsOpen:
    whys = "; ".join(f"{one.domain.kind} {one.domain.domain_id}: {one.why}" for one in left)
    msg = (
        f"run {run_id} cannot go on: nothing proves that these no longer write: {whys}. A worker of the machine they "
        f"are on may prove it; a person can say it: runtime-persist domain revoke {run_id} DOMAIN --by NAME"
    )
    return DomainsOpen(msg, run_id=run_id, domains=[one.domain.domain_id for one in left])


def _leased(owned: OwnedRun) -> dict[str, Any]:
    lease = owned.lease
    return {
        "space": lease.space,
        "run_id": lease.run_id,
        "epoch": lease.epoch,
        "actor": f"worker:{lease.worker_id}",
    }


def _said(text: str) -> str:
    return storable(redacted(text), limits.ERROR_TEXT_CHARS_MAX)


def _encoded(kind: object, handle: object) -> str:
    if not is_name(kind):
        msg = f"the kind of an execution domain must be a non-empty text, not {kind!r}"
        raise InvalidInput(msg)
    try:
        text = json.dumps(dict(handle) if isinstance(handle, Mapping) else handle, allow_nan=False, ensure_ascii=True)
        fits = isinstance(handle, Mapping) and json.loads(text) == dict(handle)
    except (TypeError, ValueError) as error:
        msg = f"the handle of a domain of kind {kind!r} must be JSON: {error}"
        raise InvalidInput(msg) from error
    if not fits:
        msg = f"the handle of a domain of kind {kind!r} must be a JSON object that comes back equal, not {handle!r}"
        raise InvalidInput(msg)
    if len(text) > limits.DOMAIN_HANDLE_CHARS_MAX:
        most = limits.DOMAIN_HANDLE_CHARS_MAX
        msg = f"the handle of a domain of kind {kind!r} has {len(text)} characters; at most {most} are allowed"
        raise InvalidInput(msg)
    return text
