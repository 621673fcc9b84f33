"""Row D1: an agent that loops stops at its budget, however often and wherever it is called again."""

from runtime_persist import Budget
from runtime_persist.testing.faults import check_invariants, read_rows
from tests.soak.programs import Outside
from tests.support.leases import run_out
from tests.user_pains.programs_effects import LOOPS, STEPS, loops_for_ever

NEVER = 0


def test_d1_a_loop_stops_at_its_budget_over_calls_processes_and_a_crash_and_goes_on_when_it_is_raised(
    runtime, shared_url, fork, raw, tmp_path, cli
):
    """LangGraph's limit of steps begins again with each call; the budget does not."""
    outside = Outside(tmp_path / "outside")

    def called(given, dies_behind=NEVER):
        return fork(loops_for_ever, shared_url, str(outside.path), given, dies_behind)

    def entered():
        return [int(words[1]) for words in outside.lines()]

    assert called({"log": []}).result() == "GraphRecursionError"
    assert entered() == list(range(STEPS))
    crashing = called(None, dies_behind=STEPS + 2)
    crashing.until("behind")
    crashing.kill()
    run_out(raw)
    for _ in range(2):  # the second call changes nothing
        assert called(None).result() == "BudgetExhausted"
        assert entered() == list(range(LOOPS))  # each once, the next one never
    run = runtime.runs.list(thread_id="t")[0]
    assert (run.status, tuple(run.budget["loops"])) == ("waiting_approval", (LOOPS, 0, LOOPS))
    (question,) = runtime.runs.questions(run.run_id)
    assert (question.kind, question.budget["budget"], question.budget["consumed"]) == ("budget", "loops", LOOPS)
    assert f"{LOOPS} of {LOOPS} loops are consumed" in " ".join(cli("run", "why", run.run_id).stdout.split())
    assert runtime.runs.resume(run.run_id, Budget(loops=LOOPS + 1)) == "queued"
    assert called(None).result() == "BudgetExhausted"
    assert entered() == list(range(LOOPS + 1))
    assert check_invariants(read_rows(runtime.engine)) == []
