"""Row J2: old and new workers on one queue in a rolling deployment."""

from tests.support.graphs import chain, says
from tests.user_pains.programs_runs import sweeps

OLD, NEW = {"a": "a", "b": "b"}, {"a": "a", "b2": "b of the new release"}


def test_j2_an_old_worker_leaves_a_run_of_the_new_release_alone_and_a_new_one_finishes_it(
    runtime, shared_url, fork, raw
):
    runtime.bind(chain({name: says(word) for name, word in NEW.items()}), name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    rows = raw.rows("SELECT * FROM rp_runs"), raw.rows("SELECT * FROM rp_events ORDER BY seq")
    assert fork(sweeps, shared_url, OLD, 3).result() == []
    assert (raw.rows("SELECT * FROM rp_runs"), raw.rows("SELECT * FROM rp_events ORDER BY seq")) == rows
    assert raw.value("SELECT count(*) FROM rp_attempts") == 0
    assert fork(sweeps, shared_url, NEW, 1).result() == ["claimed", "finished"]
    assert run.result(timeout=0)["log"] == ["a", "b of the new release"]
    assert run.record().attempt_no == 1
