"""A run's whole life in one process, command by command, to be killed between any two of them."""

from runtime_persist.engine import Engine
from tests.faults import acts
from tests.faults.kit import LEASE_SECONDS, Stage
from tests.faults.victims import Hook, Tell

STEPS = (
    "start_run",
    "claim_run",
    "activate_lease",
    "request_start",
    "report_attempt_event",
    "commit_workflow_checkpoint",
    "begin_operation",
    "complete_operation",
    "finalize_run",
)
"""The commands of the life, in order."""


def never(_run_id: str) -> None:
    raise AssertionError("the victim does not expire leases")


def live(_tell: Tell, hook: Hook, url: str, thread_id: str) -> None:
    """Queue a run, work on it, finish it."""
    engine = Engine(url, auto_setup=False, hook=hook, lease_ttl=LEASE_SECONDS)
    stage = Stage(url, thread_id, engine, never)
    owned = acts.claim(stage, acts.queue(stage))
    acts.activate(owned)
    acts.commit(stage, acts.checkpoint(stage, owned, None))
    begin = acts.begin(stage, owned)
    acts.commit(stage, begin)
    acts.commit(stage, acts.complete(stage, owned, begin.operation_id))
    acts.finish(stage, owned)
