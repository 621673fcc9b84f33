"""The rows of the kill matrix for execution domains: opened, revoked, and a takeover that is blocked by one."""

from dataclasses import replace

import pytest

from runtime_persist.commands.block_takeover import BlockTakeover
from runtime_persist.commands.confirm_revocation import ConfirmRevocation
from runtime_persist.commands.fail_attempt import FailAttempt
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.open_domain import OpenDomain
from runtime_persist.commands.parts.spec import ColdCommand
from runtime_persist.commands.record_revocation import RecordRevocation
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.engine import OwnedRun, ownership, payloads, run
from runtime_persist.errors import DomainsOpen
from runtime_persist.model.domains import Proof
from runtime_persist.model.ids import new_id
from runtime_persist.model.retry import RetryPolicy
from tests.faults import acts, scenarios
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Scenario

DOMAIN = "domain"
ENDS_NONE = "no execution domain ends with this command"


def without_domains(scenario: Scenario) -> Scenario:
    """A scenario of an end that no domain ends with says so: three commands can end some."""
    spec = scenario.spec
    if not isinstance(spec, ColdCommand) or scenario.name.endswith(":domain") or not hasattr(spec.dto, "ends_domains"):
        return scenario
    return replace(scenario, never={"read_domain": ENDS_NONE, "save_domain": ENDS_NONE} | scenario.never)


# --- before the kill ------------------------------------------------------------------------------------------------


def opens(stage: Stage, owned: OwnedRun) -> OpenDomain:
    return OpenDomain(domain_id=DOMAIN, kind="process", handle='{"pid": 1}', **acts.leased(stage, owned))


def with_domain(stage: Stage, **request: str) -> OwnedRun:
    """An owned run that has opened a domain."""
    asked = replace(acts.request(stage), **request)
    owned = run(ownership.start(stage.engine, acts.SERDE, asked, stage.thread_id))
    stage.engine.heartbeats.remove(owned)
    acts.commit(stage, opens(stage, owned))
    return owned


def recovering(stage: Stage) -> OwnedRun:
    """Somebody claimed the run of a dead worker, whose domain is open."""
    run_id = with_domain(stage).lease.run_id
    stage.expire(run_id)
    return acts.claim(stage, run_id)


def revokes(stage: Stage, owned: OwnedRun) -> RecordRevocation:
    return RecordRevocation(domain_id=DOMAIN, how=Proof.GONE, saw="nothing", **acts.leased(stage, owned))


def confirms(stage: Stage, run_id: str) -> ConfirmRevocation:
    fields = {"space": stage.engine.space, "command_id": new_id()}
    return ConfirmRevocation(run_id=run_id, domain_id=DOMAIN, saw="gone", **fields)


def an_opening(stage: Stage) -> Prepared:
    owned = acts.own(stage)
    return Prepared(opens(stage, owned), {"run_id": owned.lease.run_id})


def a_revocation(stage: Stage) -> Prepared:
    owned = recovering(stage)
    return Prepared(revokes(stage, owned), {"run_id": owned.lease.run_id})


def a_word(stage: Stage) -> Prepared:
    """Of a person, about the last domain of a run whose takeover is blocked."""
    owned = recovering(stage)
    acts.commit(stage, BlockTakeover(**acts.leased(stage, owned)))
    return Prepared(confirms(stage, owned.lease.run_id), {"run_id": owned.lease.run_id})


def a_blocked_takeover(stage: Stage) -> Prepared:
    owned = recovering(stage)
    return Prepared(BlockTakeover(**acts.leased(stage, owned)), {"run_id": owned.lease.run_id})


def ending(stage: Stage, owned: OwnedRun) -> dict[str, object]:
    fields = {"run_id": owned.lease.run_id, "epoch": owned.lease.epoch, "ends_domains": (DOMAIN,)}
    return fields | acts.thread(stage)


def an_end(stage: Stage) -> Prepared:
    data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "result"))
    said = {"result": data, "owner": stage.engine.owner, "blobs": blobs}
    return Prepared(FinalizeRun.succeeded(**said, **ending(stage, with_domain(stage))), {"status": "succeeded"})


def a_failure(stage: Stage) -> Prepared:
    owned = with_domain(stage, retry_policy=RetryPolicy(backoff=0).encoded())
    command = FailAttempt(error_code="ValueError", error_summary="no luck", **ending(stage, owned))
    return Prepared(command, {"run_id": owned.lease.run_id})


def a_drain(stage: Stage) -> Prepared:
    owned = with_domain(stage)
    command = YieldAttempt(reason="drain", ends_domains=(DOMAIN,), **acts.leased(stage, owned))
    return Prepared(command, {"run_id": owned.lease.run_id})


# --- after it -------------------------------------------------------------------------------------------------------


def finished_when_revoked(stage: Stage, run_id: str) -> None:
    """Whoever takes the run over waits for the receipt of its domain; then it goes on and ends."""
    stage.expire(run_id)
    owned = acts.claim(stage, run_id)
    with pytest.raises(DomainsOpen):
        acts.activate(owned)
    acts.commit(stage, revokes(stage, owned))
    acts.activate(owned)
    acts.finish(stage, owned)


def is_open(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    assert [row["state"] for row in acts.rows(stage)["domains"]] == ["open"]
    finished_when_revoked(stage, prepared.facts["run_id"])


def is_revoked(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    (row,) = acts.rows(stage)["domains"]
    assert row["state"] == "revoked"
    acts.take_over_and_finish(stage, prepared.facts["run_id"])


def is_free(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    owned = acts.claim(stage, prepared.facts["run_id"])  # at once: the blocked claim was given back
    acts.activate(owned)
    acts.finish(stage, owned)


def is_blocked(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    told = [event for event in acts.rows(stage)["events"] if event["type"] == "run.takeover_blocked"]
    assert len(told) == 1
    finished_when_revoked(stage, prepared.facts["run_id"])


def has_ended(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.ended_again(stage, prepared, committed)
    assert [row["state"] for row in acts.rows(stage)["domains"]] == ["revoked"]


def goes_on(stage: Stage, prepared: Prepared, committed: bool) -> None:
    scenarios.again(stage, prepared, committed)
    assert [row["state"] for row in acts.rows(stage)["domains"]] == ["revoked"]
    owned = acts.claim(stage, prepared.facts["run_id"])
    acts.activate(owned)
    acts.finish(stage, owned)


DOMAINS = (
    Scenario("open_domain", an_opening, is_open, scenarios.receipts),
    Scenario("record_revocation", a_revocation, is_revoked, scenarios.receipts),
    Scenario("confirm_revocation", a_word, is_free, scenarios.receipts),
    Scenario("block_takeover", a_blocked_takeover, is_blocked, scenarios.receipts),
    Scenario("finalize_run:domain", an_end, has_ended, scenarios.receipts),
    Scenario(
        "fail_attempt:domain",
        a_failure,
        goes_on,
        scenarios.receipts,
        {"save_thread": "a run that is tried again keeps its thread"},
    ),
    Scenario("yield_attempt:domain", a_drain, goes_on, scenarios.receipts, {"store_blob": "a drain asks nothing"}),
)

DOMAINS_ALIKE = {"fail_attempt:domain", "yield_attempt:domain"}
"""Killed in the full run only: they send the statements of ``finalize_run:domain`` in the same place."""
