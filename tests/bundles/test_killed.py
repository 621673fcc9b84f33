"""The bundle of a run whose process was killed at a cut point is whole, and goes through a file, before recovery."""

from dataclasses import replace

import pytest

from runtime_persist.engine import run as flow
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.bundles import export
from runtime_persist.inspector.bundles.verify import parsed
from runtime_persist.inspector.recovery import plan_of_bundle
from runtime_persist.runtime.recovering import read_plan
from runtime_persist.testing.faults import read_rows
from tests.faults.killing import kill, reachable, trace
from tests.faults.labs import fork_server, sqlite_lab  # noqa: F401
from tests.faults.matrix import SCENARIOS

SELECTED = {
    "claim_run",
    "commit_workflow_checkpoint",
    "begin_operation",
    "complete_operation",
    "open_domain",
    "finalize_run",
}

_LEFT = {"run_held", "run_stopping_held", "run_to_end", "run_left", "run_left_with_runtime", "run_crash_loop"}
MAY_BE = {
    "created": {"run_created"},
    "queued": {"run_queued", "run_resumes", "run_to_end"},
    "dispatching": {*_LEFT, "run_not_started", "run_not_started_again"},
    "running": _LEFT,
    "lost": _LEFT,
    "waiting_approval": {"run_asks", "run_to_end"},
    "retry_wait": {"run_retry_due", "run_retry_later", "run_to_end"},
    **dict.fromkeys(("succeeded", "failed", "cancelled", "timed_out"), frozenset({"run_final"})),
}
"""The rows of the recovery table that a run of a status may be in."""


def _cases():
    for scenario in SCENARIOS:
        cuts = reachable(scenario, "sqlite")
        for cut in cuts:
            chosen = scenario.name in SELECTED and cut in (cuts[len(cuts) // 2], cuts[-1])
            marks = () if chosen else (pytest.mark.exhaustive,)
            yield pytest.param(scenario, cut, id=f"{scenario.name}-{cut.name}", marks=marks)


@pytest.mark.parametrize(("scenario", "cut"), list(_cases()))
def test_its_bundle_has_every_row_and_verifies(sqlite_lab, fork_server, scenario, cut):  # noqa: F811
    looked: list[int] = []

    def look_and_recover(stage, prepared, committed):
        rows = read_rows(stage.engine, stage.thread_id)
        for run in rows["runs"]:
            found = parsed(b"".join(flow(export(stage.engine, run["run_id"]))))
            for name in ("attempts", "events", "domains"):
                mine = [row for row in rows[name] if row["run_id"] == run["run_id"]]
                assert len(found.rows[name]) == len(mine), name
            plan = flow(read_plan(stage.engine, run["run_id"]))
            assert [item.rule for item in view_of(found).recovery] == [item.rule for item in plan.items]
            assert plan_of_bundle(found).hash == plan.hash
            assert plan.run.rule in MAY_BE[run["status"]], run["status"]
        looked.append(len(rows["runs"]))
        scenario.recover(stage, prepared, committed)

    trace(sqlite_lab, fork_server, scenario)
    kill(sqlite_lab, fork_server, replace(scenario, recover=look_and_recover), cut)
    assert len(looked) == 1
