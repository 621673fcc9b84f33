"""Doing what a recovery plan says with the run's graph at hand: whoever has it executes the run, here and now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.engine import run as flow
from runtime_persist.model import limits
from runtime_persist.model.capacity import task_id
from runtime_persist.model.evidence import IN_PROCESS
from runtime_persist.model.states import ACTIVE_RUN, RunStatus
from runtime_persist.recovery import Act, RecoveryPlan
from runtime_persist.runtime import recovering
from runtime_persist.worker.capacity import Instance
from runtime_persist.worker.execute import Task
from runtime_persist.worker.registry import look_up, serve
from runtime_persist.worker.runtimes import Runtimes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime_persist.runtime import Runtime
    from runtime_persist.runtime.recovering import Recovered
    from runtime_persist.worker.registry import Servable
    from runtime_persist.worker.runtimes import AttemptRuntime

_EXECUTED = frozenset({Act.CLAIM, Act.TAKE_OVER, Act.ASK_RUNTIME})


def recover(
    runtime: Runtime,
    run_id: str,
    *,
    plan: str | RecoveryPlan,
    graphs: Mapping[str, Servable],
    runtimes: Sequence[AttemptRuntime] = (),
    default_runtime: str = IN_PROCESS,
) -> Recovered:
    """Do what a plan says, and execute the run's graph to its end (or its next question) where that is part of it.

    It is what a worker does that claims the run, by the same steps; only that it claims this run and no other, and
    nothing at all when something is not as the plan saw it.

    Args:
        runtime: the opened database.
        run_id: the run.
        plan: of ``runtime.runs.recovery_plan``, or its hash.
        graphs: as a worker takes them; the run's must be among them.
        runtimes: what executes attempts, beside this process itself; whoever made them closes them.
        default_runtime: name of the runtime of graphs that name none.

    Raises:
        RecoveryPlanChanged: something is not as the plan saw it; the error names what.
        UnknownGraph: the run's graph is not among them; nothing was done.
        NothingToClaim, CapacityReached: it comes behind another run, is of another version, or has no place now.
        DomainsOpen: nothing proves that an older attempt can no longer write; nothing was started.
        Exception: what ended the execution without an end of the attempt (LeaseLost, say); what the graph raised is
            the run's failure, and no error here.

    """
    engine = runtime.engine
    now = flow(recovering.checked_plan(engine, run_id, plan))
    if Act(now.run.act) not in _EXECUTED:
        return flow(recovering.recover(engine, runtime.checkpointer.serde, run_id, now))
    served = look_up({name: serve(name, given) for name, given in graphs.items()}, now.graph)
    known = Runtimes(runtimes, default_runtime)
    known.check(runtime, now.graph, served)
    instance = Instance(engine, 1, {now.graph: served.versions})
    instance.keep_reported([])
    try:
        serde = runtime.checkpointer.serde
        owned, taken = flow(recovering.claim(engine, serde, now, instance.instance_id, served.claims))
        instance.keep_reported([task_id(run_id, owned.lease.epoch)])
        task = Task(runtime, owned, taken, {now.graph: served}, limits.STOP_GRACE_SECONDS, known)
        error = task.run()
    finally:
        instance.leave([])
    found = flow(recovering.outcome(engine, run_id, "claimed", *(["executed"] if task.dispatched else [])))
    if error is not None and RunStatus(found.status) in ACTIVE_RUN:  # nobody settled it: the lease is lost, say
        raise error
    return found
