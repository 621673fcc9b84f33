"""What a worker settles besides its own runs: runs past their deadline, and runs that nobody holds any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.errors import IllegalTransition, RunNotFound
from runtime_persist.model import limits
from runtime_persist.model.ids import new_id
from runtime_persist.queries import runs as run_queries

if TYPE_CHECKING:
    from runtime_persist.engine import Engine


def sweep(engine: Engine) -> None:
    """Stop what is past its deadline (what nobody executes ends at once); state as lost what was left behind.

    It looks at the runs of all graphs, also of those this worker does not have: neither needs a graph's code.
    """
    coordinator, actor = engine.coordinator, f"worker:{engine.worker_id}"
    found = coordinator.read("read_overdue", lambda: run_queries.overdue(engine.space, limits.SWEEP_ROWS_MAX))
    for run_id in found.result():
        _settle(
            engine,
            RequestStop(space=engine.space, command_id=new_id(), actor=actor, run_id=run_id, reason="deadline"),
        )
    found = coordinator.read("read_left", lambda: run_queries.left(engine.space, limits.SWEEP_ROWS_MAX))
    for run_id in found.result():
        _settle(engine, MarkLost(space=engine.space, command_id=new_id(), actor=actor, run_id=run_id))


def _settle(engine: Engine, command: RequestStop | MarkLost) -> None:
    try:
        engine.coordinator.commit(command).result()
    except (IllegalTransition, RunNotFound):
        return  # somebody took it over, or deleted its thread, since it was read
