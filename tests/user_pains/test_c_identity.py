"""Row C7: after a crash, another machine finds the same run, the same operation, the same key."""

from runtime_persist.engine import run as flow
from runtime_persist.inspector import load_bundle
from tests.support.leases import run_out
from tests.user_pains.programs_runs import charges, charges_and_waits

KEPT = "SELECT operation_id, name, ordinal, created_us, idempotency_key, try_no FROM rp_operations"


def test_c7_a_recovery_elsewhere_has_the_ids_and_keys_of_the_first_attempt(runtime, shared_url, fork, raw):
    runtime.bind(charges(), name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    first = fork(charges_and_waits, shared_url)
    (charged,) = first.until("charged")
    first.kill()
    before, created = raw.rows(KEPT), run.record().created_us
    run_out(raw)
    second = fork(charges_and_waits, shared_url)
    assert second.until("charged") == (charged,)
    second.give_the_word()
    assert run.result(timeout=30)["log"] == [charged]
    assert raw.rows(KEPT) == before
    bundle = flow(load_bundle(runtime.engine, runtime.checkpointer.serde, run.run_id))
    assert (bundle.run.run_id, bundle.run.created_us) == (run.run_id, created)
    assert [(one.attempt_no, one.cause, one.status) for one in bundle.attempts] == [
        (1, "initial", "lost"), (2, "takeover", "succeeded"),
    ]  # fmt: skip
    assert len({one.worker_id for one in bundle.attempts}) == 2
    assert [one.run_id for one in runtime.runs.list()] == [run.run_id]
