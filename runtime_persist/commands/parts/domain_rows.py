"""Execution domains as commands change them. The run's row counts those that are open, so its lock covers them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from runtime_persist.dialects.sql import bind, constant, insert
from runtime_persist.errors import DomainNotFound, DomainsOpen, IllegalTransition, InvariantBroken
from runtime_persist.model import limits
from runtime_persist.model.domains import DomainState, Proof, RevocationReceipt
from runtime_persist.model.lease import ALL_REVOKED, EMPTY_DOMAIN_SET
from runtime_persist.plan import Call, Plan, Query, Row, many, one_or_none
from runtime_persist.schema import domains

if TYPE_CHECKING:
    from collections.abc import Collection

    from runtime_persist.commands.parts.taking import Taken

_D = domains.c

INSERT_DOMAIN = Query("insert_domain", insert(domains).values(**{column.name: bind(column) for column in _D}))
READ_DOMAIN = Query(
    "read_domain",
    select(domains).where(_D.space == bind(_D.space), _D.run_id == bind(_D.run_id), _D.domain_id == bind(_D.domain_id)),
)
READ_OPEN_DOMAINS = Query(
    "read_open_domains",
    select(domains)
    .where(
        _D.space == bind(_D.space),
        _D.run_id == bind(_D.run_id),
        _D.state == constant(DomainState.OPEN.value),
    )
    .order_by(_D.opened_us, _D.domain_id),
)
SAVE_DOMAIN = Query(
    "save_domain",
    update(domains)
    .values(state=bind(_D.state), proof=bind(_D.proof), revoked_us=bind(_D.revoked_us))
    .where(_D.space == bind(_D.space), _D.run_id == bind(_D.run_id), _D.domain_id == bind(_D.domain_id)),
)


def find(run: Row, domain_id: str) -> Plan[Row | None]:
    """Read a domain of a run (it changes only under the run's lock)."""
    return (yield from one_or_none(READ_DOMAIN, space=run["space"], run_id=run["run_id"], domain_id=domain_id))


def get(run: Row, domain_id: str) -> Plan[Row]:
    """Read a domain of a run (raises DomainNotFound)."""
    row = yield from find(run, domain_id)
    if row is None:
        msg = f"run {run['run_id']} has no execution domain {domain_id!r}"
        raise DomainNotFound(msg, run_id=run["run_id"], domain_id=domain_id)
    return row


def still_open(run: Row) -> Plan[list[Row]]:
    """Read the open domains of a run, oldest first."""
    return list((yield from many(READ_OPEN_DOMAINS, space=run["space"], run_id=run["run_id"])))


def add(run: Taken, domain_id: str, kind: str, handle: str) -> None:
    """Open a domain under the run's current epoch."""
    run.effects.append(
        Call(
            INSERT_DOMAIN,
            {
                "space": run.run["space"],
                "run_id": run.run["run_id"],
                "domain_id": domain_id,
                "epoch": run.run["epoch"],
                "attempt_id": run.run["attempt_id"],
                "kind": kind,
                "handle": handle,
                "state": DomainState.OPEN.value,
                "proof": None,
                "opened_us": run.now,
                "revoked_us": None,
            },
        ),
    )
    run.run["domains_opened"] += 1
    run.run["domains_open"] += 1
    run.tell("domain.opened", domain_id=domain_id, domain_kind=kind)


def revoke(run: Taken, domain: Row, how: Proof, saw: str, by: str) -> RevocationReceipt:
    """Revoke an open domain; return its receipt."""
    receipt = RevocationReceipt(how=how, saw=saw, by=by, epoch=run.run["epoch"], at_us=run.now)
    run.effects.append(
        Call(
            SAVE_DOMAIN,
            {
                "space": domain["space"],
                "run_id": domain["run_id"],
                "domain_id": domain["domain_id"],
                "state": DomainState.REVOKED.value,
                "proof": receipt.model_dump_json(),
                "revoked_us": run.now,
            },
        ),
    )
    run.run["domains_open"] -= 1
    if run.run["domains_open"] < 0:
        msg = f"run {run.run['run_id']} counts fewer open domains than it has"
        raise InvariantBroken(msg, run_id=run.run["run_id"])
    run.tell("domain.revoked", domain_id=domain["domain_id"], how=how.value)
    return receipt


def revocation(run: Row) -> str:
    """Return why the run's lease may be active.

    Raises:
        DomainsOpen: nothing proves yet that its domains cannot be written to.

    """
    check_revoked(run, "go on")
    return ALL_REVOKED if run["domains_opened"] else EMPTY_DOMAIN_SET


def check_revoked(run: Row, to_do: str) -> None:
    """Raise DomainsOpen when the run, which is about ``to_do`` something, has a domain that is not revoked."""
    if run["domains_open"]:
        msg = (
            f"run {run['run_id']} cannot {to_do}: {run['domains_open']} of its execution domains may still write; "
            "a worker of the machine they are on can revoke them, or say that they are gone: "
            f"runtime-persist domain revoke {run['run_id']} DOMAIN --by NAME"
        )
        raise DomainsOpen(msg, run_id=run["run_id"], domains_open=run["domains_open"])


def end_own(run: Taken, domain_ids: Collection[str], by: str) -> Plan[None]:
    """Before the run's lease is released: revoke the domains that end with this very command; the rest must be.

    ``domain_ids``: of the process that sends it, which says by it that it has stopped.

    Raises:
        DomainNotFound, IllegalTransition: not an open domain of this epoch.
        DomainsOpen: another domain is not revoked.

    """
    for domain_id in domain_ids:
        domain = yield from get(run.run, domain_id)
        if domain["state"] != DomainState.OPEN or domain["epoch"] != run.run["epoch"]:
            msg = f"domain {domain_id} of epoch {domain['epoch']} is {domain['state']}; it does not end with this one"
            raise IllegalTransition(msg, run_id=domain["run_id"], domain_id=domain_id)
        revoke(run, domain, Proof.ENDED, "its own process committed the end of its attempt", by)
    check_revoked(run.run, "let go of its lease")


def named(found: Collection[Row]) -> dict[str, object]:
    """Return the fields of an event about domains: ids of some, and how many more there are."""
    ids = [row["domain_id"] for row in found]
    return {"domains": ids[: limits.DOMAINS_NAMED_MAX], "more": max(0, len(ids) - limits.DOMAINS_NAMED_MAX)}


__all__ = [
    "INSERT_DOMAIN",
    "READ_DOMAIN",
    "READ_OPEN_DOMAINS",
    "SAVE_DOMAIN",
    "add",
    "check_revoked",
    "end_own",
    "find",
    "get",
    "named",
    "revocation",
    "revoke",
    "still_open",
]
