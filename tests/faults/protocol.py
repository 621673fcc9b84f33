"""The rows of the kill matrix for runtimes without a lease: what they report by token, and the token's end."""

import json
from typing import Any

from runtime_persist.commands.open_domain import OpenDomain
from runtime_persist.commands.report_callback import ReportCallback
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.commands.revoke_callback import RevokeCallback
from runtime_persist.engine import OwnedRun, dispatch, payloads, run
from runtime_persist.model.callbacks import CallbackToken
from runtime_persist.model.evidence import Observed
from runtime_persist.model.ids import new_id
from tests.faults import acts, scenarios
from tests.faults.kit import Stage
from tests.faults.scenarios import Prepared, Scenario

NOT_LATE = "it is in time"
_OF_AN_END = ("read_open_domains", "read_domain", "save_domain", "save_attempt", "save_thread", "store_blob")
TOO_LATE = "it comes too late, and changes nothing"


def started(stage: Stage, *, domain: bool = False) -> tuple[OwnedRun, bytes]:
    """A run past its start fence, whose runtime has a token (and a domain)."""
    owned = acts.claim(stage, acts.queue(stage))
    run(dispatch.activate_lease(owned))
    if domain:
        handle = json.dumps({"where": "elsewhere"})
        acts.commit(stage, OpenDomain(domain_id=new_id(), kind="remote", handle=handle, **acts.leased(stage, owned)))
    token = CallbackToken.new(owned.lease.run_id, owned.attempt_id)
    token_hash = stage.engine.coordinator.keys.callback_hash(token.text)
    fields = {"attempt_id": owned.attempt_id, "callback_hash": token_hash, "callback_ttl_us": 3_600_000_000}
    acts.commit(stage, RequestStart(runtime="remote", **fields, **acts.leased(stage, owned)))
    return owned, token_hash


def report(stage: Stage, owned: OwnedRun, token_hash: bytes, observed: Observed, sequence: int) -> ReportCallback:
    fields: dict[str, Any] = {}
    if observed is Observed.SUCCEEDED:
        data, blobs = payloads.encode(stage.engine, acts.SERDE, acts.large(stage, "result"))
        fields = {"result": data, "blobs": blobs}
    return ReportCallback(
        run_id=owned.lease.run_id,
        attempt_id=owned.attempt_id,
        token_hash=token_hash,
        observed=observed,
        sequence=sequence,
        owner=stage.engine.owner,
        **fields,
        **acts.thread(stage),
    )


def an_end(stage: Stage) -> Prepared:
    owned, token_hash = started(stage, domain=True)
    return Prepared(report(stage, owned, token_hash, Observed.SUCCEEDED, 1))


def a_late_report(stage: Stage) -> Prepared:
    owned, token_hash = started(stage)
    acts.commit(stage, report(stage, owned, token_hash, Observed.SUCCEEDED, 1))
    return Prepared(report(stage, owned, token_hash, Observed.FAILED, 2))


def a_revocation(stage: Stage) -> Prepared:
    owned, _ = started(stage)
    command = RevokeCallback(
        run_id=owned.lease.run_id, attempt_id=owned.attempt_id, space=stage.engine.space, command_id=new_id()
    )
    return Prepared(command, {"run_id": owned.lease.run_id})


def has_succeeded(stage: Stage, prepared: Prepared, committed: bool) -> None:
    """Sent again, it is the same report; the run ended once, and its domain with it."""
    scenarios.again(stage, prepared, committed)
    rows = acts.check(stage)
    assert [row["status"] for row in rows["runs"]] == ["succeeded"]
    assert all(row["state"] == "revoked" for row in rows["domains"])
    assert [row["owner_run_id"] for row in rows["threads"]] == [None]


PROTOCOL = (
    Scenario(
        "report_callback:end",
        an_end,
        has_succeeded,
        scenarios.receipts,
        {"read_late_callback": NOT_LATE},
    ),
    Scenario(
        "report_callback:late",
        a_late_report,
        has_succeeded,
        scenarios.receipts,
        dict.fromkeys(
            ("read_open_domains", "read_domain", "save_domain", "save_attempt", "save_thread", "store_blob"), TOO_LATE
        ),
    ),
    Scenario("revoke_callback", a_revocation, scenarios.step_again, scenarios.receipts),
)
