"""What a worker does with runs that fail: again after a while, and no oftener than the policy says."""

import pytest

from runtime_persist import RetryPolicy
from runtime_persist.errors import InvalidInput, ResultPending, RunFailed
from runtime_persist.worker import RegisteredGraph
from tests.support.graphs import chain, fails, says
from tests.support.way import SYNC

SOON = RetryPolicy(max_attempts=3, backoff=0)


@pytest.fixture
def way():
    """The sync way alone: what is asked for in either way is the same row, and that is what workers see."""
    return SYNC


def failing(times, error=ValueError):
    """A node that fails as often as that, then logs how often it was entered."""
    entered = []

    def node(_):
        entered.append(1)
        if len(entered) <= times:
            msg = f"no luck {len(entered)}, token=abc123"
            raise error(msg)
        return {"log": [len(entered)]}

    return node, entered


def attempts(raw):
    rows = raw.rows("SELECT cause, status FROM rp_attempts ORDER BY attempt_no")
    return [(row["cause"], row["status"]) for row in rows]


async def test_a_proved_failure_is_tried_again_from_the_last_step(runtime, way, works, start, raw):
    node, entered = failing(2)
    first, begun = failing(0)
    graphs = {"g": chain({"first": first, "node": node})}
    run = await start(graphs, "g", thread_id="t", retry=SOON)
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [1, 3]
    assert (len(begun), len(entered)) == (1, 3)
    assert attempts(raw) == [("initial", "failed"), ("retry", "failed"), ("retry", "succeeded")]
    record = await way(run, "record")
    assert (record.failures, record.takeovers, record.attempt_no) == (2, 0, 3)


async def test_a_spent_policy_ends_in_failed_with_code_and_redacted_summary(runtime, way, works, start, raw):
    node, entered = failing(9)
    graphs = {"g": chain({"node": node})}
    run = await start(graphs, "g", thread_id="t", retry=SOON)
    works(graphs)
    with pytest.raises(RunFailed, match="no luck 3") as caught:
        await way(run, "result", timeout=0)
    assert (caught.value.details["error_code"], len(entered)) == ("ValueError", 3)
    record = await way(run, "record")
    assert record.error_summary == "no luck 3, token=…"
    assert "abc123" not in str(raw.rows("SELECT error_summary FROM rp_attempts"))
    assert raw.value("SELECT owner_run_id FROM rp_threads") is None


async def test_until_it_is_due_a_run_waits_and_holds_its_thread(runtime, way, works, start, raw):
    node, entered = failing(1)
    graphs = {"g": chain({"node": node})}
    run = await start(graphs, "g", thread_id="t", retry=RetryPolicy(backoff=3_600, backoff_max=3_600))
    behind = await start(graphs, "g", thread_id="t")
    works(graphs)
    record = await way(run, "record")
    assert (record.status, record.shown, record.phase) == ("retry_wait", "retry_wait", "released")
    assert record.next_attempt_us > record.created_us + 3_000_000_000
    assert (await way(behind, "record")).attempt_no == 0
    with pytest.raises(ResultPending, match="retry_wait"):
        await way(run, "result", timeout=0)
    raw.rows("UPDATE rp_runs SET next_attempt_us = 1")  # its time has come
    works(graphs)
    assert (await way(run, "result", timeout=0))["log"] == [2]
    assert (await way(behind, "record")).status == "succeeded"
    assert len(entered) == 3


async def test_a_run_that_waits_for_its_retry_is_cancelled_at_once(runtime, way, works, start):
    graphs = {"g": chain({"node": failing(1)[0]})}
    run = await start(graphs, "g", thread_id="t", retry=RetryPolicy(backoff=3_600))
    works(graphs)
    assert await way(run, "cancel") == "cancelled"


async def test_the_policy_of_a_registered_graph_counts_for_runs_that_name_none(runtime, way, works, start, raw):
    node, entered = failing(9)
    served = {"g": RegisteredGraph(chain({"node": node}), retry=SOON)}
    works(served)  # registers it, and finds nothing to do
    own = await way(runtime.runs, "start", "g", {"log": []}, thread_id="own", retry=RetryPolicy(max_attempts=1))
    graphs_one = await way(runtime.runs, "start", "g", {"log": []}, thread_id="graph's")
    works(served)
    assert len(entered) == 4
    assert [(await way(run, "record")).failures for run in (own, graphs_one)] == [1, 3]
    works({"g": chain({"node": node})})  # a worker that serves it without a policy: it is registered so from now on
    await way(runtime.runs, "start", "g", {"log": []}, thread_id="later")
    works({"g": chain({"node": node})})
    assert len(entered) == 5


async def test_what_cannot_end_differently_is_not_tried_again(runtime, way, works, start, raw):
    graphs = {"g": chain({"node": lambda _: {"log": [object()]}})}  # cannot be stored
    run = await start(graphs, "g", thread_id="t", retry=SOON)
    works(graphs)
    record = await way(run, "record")
    assert (record.status, record.error_code, record.attempt_no) == ("failed", "UNSUPPORTED_VALUE", 1)


async def test_the_same_key_with_another_policy_is_another_request(runtime, way, start):
    graphs = {"g": chain({"node": says("x")})}
    run = await start(graphs, "g", idempotency_key="k", retry=SOON)
    assert (await start(graphs, "g", idempotency_key="k", retry=SOON)).run_id == run.run_id
    with pytest.raises(RuntimeError, match="another request"):
        await start(graphs, "g", idempotency_key="k", retry=RetryPolicy())


async def test_an_owned_call_that_fails_is_its_callers_affair(runtime, way):
    """The policy is for runs that workers execute; here somebody is told at once."""
    graph = runtime.bind(chain({"node": fails(ValueError("no luck"))}), name="g", retry=SOON)
    with pytest.raises(ValueError, match="no luck"):
        await way(graph, "invoke", {"log": []}, {"configurable": {"thread_id": "t"}})
    (run,) = await way(runtime.runs, "list")
    assert (run.status, run.attempt_no) == ("failed", 1)


def test_a_graph_is_not_served_with_what_cannot_be_meant(works):
    for wrong in (RegisteredGraph(7), RegisteredGraph(chain({"n": says("x")}), version="*")):
        with pytest.raises(InvalidInput):
            works({"g": wrong})
    with pytest.raises(InvalidInput, match="compatible_with"):
        works({"g": RegisteredGraph(chain({"n": says("x")}), compatible_with="v1")})
