"""Tries of an operation: retries by a policy, timeouts, and asking the outside."""

import asyncio
import threading

import pytest

from runtime_persist import DidNotHappen, Happened, RetryPolicy, StillUnknown, operation
from runtime_persist.errors import (
    InvalidInput,
    LeaseLost,
    OperationFailed,
    OperationUnknown,
    OperationUnsupported,
)
from tests.fixtures.raw import wait_until
from tests.support.graphs import chain, config
from tests.support.journal import Losing, Outside

HELLO = {"log": []}
AT_ONCE = RetryPolicy(max_attempts=3, backoff=0)


@pytest.fixture
def outside():
    return Outside()


def charging(way, outside, **options):
    """A graph whose node charges once."""
    if way.asynchronous:
        acharge = outside.acharge(**options)

        async def anode(_):
            return {"log": [(await acharge("a"))["receipt"]]}

        return chain({"node": anode})
    charge = outside.charge(**options)
    return chain({"node": lambda _: {"log": [charge("a")["receipt"]]}})


def tries_of(raw):
    rows = raw.rows("SELECT try_no, status FROM rp_operation_tries ORDER BY try_no")
    return [(row["try_no"], row["status"]) for row in rows]


# --- retry ------------------------------------------------------------------------------------------------------------


async def test_a_call_that_raised_is_tried_again_under_the_same_key(runtime, way, outside, raw):
    outside.fails += [TimeoutError("down"), TimeoutError("down")]
    graph = runtime.bind(charging(way, outside, retry=AT_ONCE), name="g")
    assert (await way(graph, "invoke", HELLO, config()))["log"] == [3]
    assert tries_of(raw) == [(1, "failed"), (2, "failed"), (3, "succeeded")]
    assert len(set(outside.keys)) == 1
    assert raw.value("SELECT count(*) FROM rp_events WHERE type = 'operation.attempt_ended'") == 2


async def test_the_last_failure_is_raised(runtime, way, outside, raw):
    outside.fails += [TimeoutError(f"down {n}") for n in range(5)]
    graph = runtime.bind(charging(way, outside, retry=AT_ONCE), name="g")
    with pytest.raises(TimeoutError, match="down 2"):
        await way(graph, "invoke", HELLO, config())
    assert tries_of(raw) == [(1, "failed"), (2, "failed"), (3, "failed")]
    assert raw.value("SELECT error_text FROM rp_operations") == "down 2"


async def test_a_crash_between_two_tries_goes_on_with_the_count(runtime, way, outside, raw):
    """The run is lost when the second try is due; who takes it over makes the second and third, and no fourth."""
    outside.fails += [TimeoutError("down")] * 3

    class Dying(Outside):
        def call(self, what, idempotency_key):
            outside.calls.append(what)
            outside.keys.append(idempotency_key)
            if len(outside.calls) == 2:
                raw.rows("UPDATE rp_runs SET epoch = epoch + 1, expires_us = 1")
            raise TimeoutError("down")

    graph = runtime.bind(charging(way, Dying(), retry=AT_ONCE), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", HELLO, config())
    assert tries_of(raw) == [(1, "failed"), (2, "started")]
    graph = runtime.bind(charging(way, Dying(), retry=AT_ONCE, on_unknown="retry"), name="g")
    with pytest.raises(TimeoutError):
        await way(graph, "invoke", None, config())
    assert tries_of(raw) == [(1, "failed"), (2, "unknown"), (3, "failed")]
    assert len(set(outside.keys)) == 1


async def test_a_try_that_is_not_due_is_waited_for_by_the_databases_clock(runtime, way, outside, raw):
    """Found by who takes the run over: the due time is stored, and it counts, whatever this process thinks."""

    class Dying(Outside):
        def call(self, what, idempotency_key):
            if not outside.calls:
                outside.calls.append(what)
                raise TimeoutError("down")
            return outside.call(what, idempotency_key)

    soon = RetryPolicy(max_attempts=2, backoff=0.4, jitter=0)
    graph = runtime.bind(charging(way, Dying(), retry=soon), name="g")
    assert (await way(graph, "invoke", HELLO, config()))["log"] == [2]
    first, second = raw.rows("SELECT started_us, ended_us FROM rp_operation_tries ORDER BY try_no")
    assert second["started_us"] >= first["ended_us"] + 400_000


async def test_a_run_that_is_stopped_while_it_waits_makes_no_further_try(runtime, way, outside, raw):
    class Stopping(Outside):
        def call(self, what, idempotency_key):
            outside.calls.append(what)
            runtime.runs.cancel(runtime.runs.list()[0].run_id)
            raise TimeoutError("down")

    graph = runtime.bind(charging(way, Stopping(), retry=AT_ONCE), name="g")
    with pytest.raises(RuntimeError) as caught:
        await way(graph, "invoke", HELLO, config())
    assert caught.value.code == "RUN_STOPPING"
    assert outside.calls == ["a"]
    assert tries_of(raw) == [(1, "failed")]


def test_a_lost_lease_ends_the_waiting(runtime, outside, raw):
    """An hour's backoff is not waited for by who may not go on."""
    outside.fails.append(TimeoutError("down"))
    hour = RetryPolicy(max_attempts=2, backoff=3_600, backoff_max=3_600)
    graph = runtime.bind(charging(_Sync, outside, retry=hour), name="g")
    died = []

    def call():
        try:
            graph.invoke(HELLO, config())
        except LeaseLost as error:
            died.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    due = "SELECT 1 AS one FROM rp_operations WHERE next_attempt_us IS NOT NULL"
    wait_until(lambda: raw.rows(due), "the next try is due in an hour")
    for owned in list(runtime.engine.heartbeats._runs):
        owned.fail(LeaseLost())
    thread.join(60)
    assert died
    assert outside.calls == ["a"]


class _Sync:
    asynchronous = False


# --- timeout ----------------------------------------------------------------------------------------------------------


def slow(calls, times=1, **options):
    """A journalled call whose first ``times`` calls take for ever."""

    @operation(name="charge", timeout=0.05, **options)
    async def charge(what, *, idempotency_key):
        calls.append(idempotency_key)
        if len(calls) <= times:
            await asyncio.Event().wait()
        return "charged"

    async def node(_):
        return {"log": [await charge("a")]}

    return chain({"node": node})


async def invoke(runtime, graph, value=HELLO):
    return await runtime.bind(graph, name="g").ainvoke(value, config())


async def test_a_call_that_takes_too_long_is_unknown_and_a_person_is_asked(runtime, raw):
    calls = []
    with pytest.raises(OperationUnknown):
        await invoke(runtime, slow(calls))
    assert tries_of(raw) == [(1, "unknown")]
    (run,) = runtime.runs.list()
    assert run.status == "waiting_approval"
    runtime.runs.resolve(raw.value("SELECT operation_id FROM rp_operations"), happened=False)
    assert (await invoke(runtime, slow(calls), None))["log"] == ["charged"]
    assert len(set(calls)) == 1


async def test_a_call_that_takes_too_long_and_may_be_repeated_is(runtime, raw):
    calls = []
    output = await invoke(runtime, slow(calls, times=2, on_unknown="retry", retry=AT_ONCE))
    assert output["log"] == ["charged"]
    assert tries_of(raw) == [(1, "unknown"), (2, "unknown"), (3, "succeeded")]
    assert len(set(calls)) == 1


@pytest.mark.parametrize("options", [{"on_unknown": "fail"}, {"on_unknown": "retry"}])
async def test_a_call_that_takes_too_long_and_is_not_repeated_has_failed(runtime, raw, options):
    calls = []
    with pytest.raises(OperationFailed):
        await invoke(runtime, slow(calls, **options))
    assert (tries_of(raw), len(calls)) == ([(1, "unknown")], 1)
    assert raw.value("SELECT status FROM rp_operations") == "failed"


async def test_a_call_that_takes_too_long_is_asked_about_outside(runtime, raw):
    calls = []

    async def ask(request, key, tries):
        assert key == calls[0]
        return Happened("found")

    assert (await invoke(runtime, slow(calls, on_unknown=ask)))["log"] == ["found"]
    assert tries_of(raw) == [(1, "succeeded")]


async def test_a_timeout_of_the_call_itself_is_its_failure(runtime, raw):
    @operation(name="charge", timeout=60)
    async def charge():
        raise TimeoutError("the server said so")

    async def node(_):
        await charge()

    with pytest.raises(TimeoutError, match="the server said so"):
        await invoke(runtime, chain({"node": node}))
    assert tries_of(raw) == [(1, "failed")]


def test_a_sync_call_cannot_be_stopped_so_it_has_no_timeout():
    with pytest.raises(OperationUnsupported, match="async"):
        operation(name="charge", timeout=1)(lambda: None)
    with pytest.raises(InvalidInput):
        operation(name="charge", timeout=0)


# --- asking the outside -----------------------------------------------------------------------------------------------


async def lost(runtime, way, raw, ask):
    outside = Losing(raw)
    graph = runtime.bind(charging(way, outside, on_unknown=ask), name="g")
    with pytest.raises(LeaseLost):
        await way(graph, "invoke", HELLO, config())
    return graph, outside


async def test_what_the_outside_says_happened_is_the_result_and_it_is_asked_once(runtime, way, raw):
    asked = []

    def ask(request, key, tries):
        asked.append((dict(request), key, [(one.try_no, one.status) for one in tries]))
        return Happened({"receipt": "known"})

    graph, outside = await lost(runtime, way, raw, ask)
    assert (await way(graph, "invoke", None, config()))["log"] == ["known"]
    assert asked == [({"what": "a"}, outside.keys[0], [(1, "unknown")])]
    assert outside.calls == ["a"]
    assert tries_of(raw) == [(1, "succeeded")]


async def test_what_the_outside_says_did_not_happen_is_called_again_under_the_same_key(runtime, way, raw):
    graph, outside = await lost(runtime, way, raw, lambda request, key, tries: DidNotHappen())
    assert (await way(graph, "invoke", None, config()))["log"] == [2]
    assert outside.keys[0] == outside.keys[1]
    assert tries_of(raw) == [(1, "failed"), (2, "succeeded")]


async def test_what_the_outside_cannot_say_is_asked_of_a_person(runtime, way, raw):
    graph, outside = await lost(runtime, way, raw, lambda request, key, tries: StillUnknown("it is down"))
    with pytest.raises(OperationUnknown) as caught:
        await way(graph, "invoke", None, config())
    assert caught.value.details["reconciled"] == "it is down"
    (run,) = await way(runtime.runs, "list")
    assert (await way(runtime.runs, "question", run.run_id))["reconciled"] == "it is down"
    await way(runtime.runs, "resolve", caught.value.details["operation_id"], happened=True, result={"receipt": "ok"})
    assert (await way(graph, "invoke", None, config()))["log"] == ["ok"]
    assert outside.calls == ["a"]


async def test_an_error_of_who_asks_is_raised_and_it_is_asked_again(runtime, way, raw):
    answers = [ConnectionError("no route"), Happened({"receipt": "known"})]

    def ask(request, key, tries):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    graph, outside = await lost(runtime, way, raw, ask)
    with pytest.raises(ConnectionError):
        await way(graph, "invoke", None, config())
    assert tries_of(raw) == [(1, "unknown")]
    assert (await way(graph, "invoke", None, config()))["log"] == ["known"]
    assert (outside.calls, answers) == (["a"], [])


async def test_an_answer_that_is_none_is_refused(runtime, way, raw):
    graph, _ = await lost(runtime, way, raw, lambda request, key, tries: True)
    with pytest.raises(InvalidInput, match="Happened"):
        await way(graph, "invoke", None, config())


def test_a_sync_call_cannot_wait_for_who_asks():
    async def ask(request, key, tries):
        return DidNotHappen()

    with pytest.raises(OperationUnsupported):
        operation(name="charge", on_unknown=ask)(lambda: None)
