"""Row B2: what was accepted is there whatever dies before its first checkpoint. B7: tests/worker/."""

import signal

import pytest

from runtime_persist.engine import run as flow
from runtime_persist.errors import RunNotFound
from runtime_persist.inspector import load_bundle
from tests.support.graphs import chain, says
from tests.support.leases import run_out
from tests.user_pains.programs_runs import dies_before_the_first_put, sweeps


def test_b2_a_run_whose_worker_died_before_its_first_checkpoint_is_finished_with_its_input(
    runtime, shared_url, fork, raw, cli
):
    runtime.bind(chain({"node": says("x")}), name="g")
    run = runtime.runs.start("g", {"log": ["given"]}, thread_id="t", idempotency_key="order 7")
    assert fork(dies_before_the_first_put, shared_url).ended() == -signal.SIGKILL
    assert raw.value("SELECT count(*) FROM rp_checkpoints") == 0
    run_out(raw)
    assert run.record().shown == "unknown"
    bundle = flow(load_bundle(runtime.engine, runtime.checkpointer.serde, run.run_id))
    assert (len(bundle.attempts), bundle.checkpoints) == (1, [])
    assert runtime.runs.start("g", {"log": ["given"]}, thread_id="t", idempotency_key="order 7").run_id == run.run_id

    assert fork(sweeps, shared_url, {"node": "x"}, 1).result() == ["claimed", "finished"]
    assert run.result(timeout=0)["log"] == ["given", "x"]
    assert run.record().attempt_no == 2
    (only,) = runtime.runs.list()
    assert only.run_id == run.run_id

    assert runtime.runs.list(thread_id="never submitted") == []
    with pytest.raises(RunNotFound):
        runtime.runs.get("never submitted")
    assert "THREAD_NOT_FOUND" in cli("thread", "show", "never submitted").output
