"""A proved failure of an attempt: its run is attempted again as its policy says, or has failed for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.commands.parts import rolling_back
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.model.states import AttemptStatus, Control, LeasePhase, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime_persist.commands.parts.taking import Taken
    from runtime_persist.plan import Plan, Row


def fail(run: Taken, thread: Row, said: Mapping[str, str | None], *, repeatable: bool, chance: float) -> Plan[None]:
    """End the attempt as failed; the failure consumes one attempt of the run's policy.

    A run that is being stopped, or past its deadline, ends for that reason.

    Args:
        run: the run, locked.
        thread: its thread's row, locked.
        said: ``error_code`` and ``error_summary``.
        repeatable: whether a further attempt could end differently.
        chance: between 0 and 1: where in the policy's jitter the wait lies.

    """
    run.stop_if_overdue()
    run.run["failures"] += 1
    policy = RetryPolicy.decoded(run.run["retry_policy"])
    again = repeatable and run.run["failures"] < policy.max_attempts
    if again and run.run["control"] == Control.OPEN:
        run.end_attempt(AttemptStatus.FAILED, "error", {**said, "observed_state": "failed"})
        due = run.now + policy.delay_us(run.run["failures"], chance)
        run.run |= {"phase": LeasePhase.RELEASED.value, "expires_us": 0, "next_attempt_us": due}
        run.move(RunStatus.RETRY_WAIT, **said)
    else:
        run.conclude(thread, RunStatus.FAILED, "error", **said)
        yield from rolling_back.roll_back(run)
