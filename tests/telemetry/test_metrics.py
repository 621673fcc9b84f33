"""What is measured: it says what happened, after it was committed, with labels that cannot grow without bound."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from langgraph.config import get_config

from runtime_persist.commands import COMMANDS
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.errors import IllegalTransition, LeaseExpired, ReportIgnored, RunNotFound, StaleWriter
from runtime_persist.model.ids import new_id
from runtime_persist.model.states import RunStatus
from runtime_persist.telemetry.metrics import METRICS
from tests.fixtures.fix_engine import FILE, POSTGRES
from tests.fixtures.raw import wait_until
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import asks, chain, config, fails, says
from tests.support.journal import Outside
from tests.support.leases import run_out

on_both = pytest.mark.parametrize("shared_url", [FILE, POSTGRES], indirect=True)


@pytest.fixture
def queued(runtime):
    runtime.bind(chain({"node": says("x")}), name="g")
    return runtime.runs.start("g", {"log": []}, thread_id="a thread")


def test_every_transition_of_a_run_is_counted_with_where_it_came_from(told, runtime, queued, works):
    works({"g": chain({"node": says("x")})})
    committed = {labels[:2] for labels, _ in told.counts("run_transition_total").items() if labels[2] == "committed"}
    path = ["none", "created", "queued", "dispatching", "running", "succeeded"]
    assert committed == set(pairwise(path))


@on_both
def test_events_are_counted_by_their_type_exactly_as_often_as_they_were_appended(told, runtime, works, raw):
    outside = Outside()
    charge = outside.charge()
    graphs = {"g": chain({"node": lambda _: {"log": [charge("a")["receipt"]]}}), "ask": chain({"node": asks("why?")})}
    for name, graph in graphs.items():
        runtime.bind(graph, name=name)
        runtime.runs.start(name, {"log": []})
    works(graphs)
    stored = raw.rows("SELECT type, count(*) AS n FROM rp_events GROUP BY type")
    assert told.counts("run_event_append_total") == {(row["type"],): row["n"] for row in stored}
    assert told.counts("run_event_append_total")["operation.completed",] == 1


def test_a_state_without_that_way_out_is_counted_as_refused_and_as_a_conflict_of_its_command(told, runtime, queued):
    queued.cancel()
    with pytest.raises(IllegalTransition):
        queued.now()
    assert told.counts("run_transition_conflict_total") == {("move_to_front",): 1}
    assert told.counts("run_transition_total")["cancelled", "unknown", "refused"] == 1


def test_commands_are_timed_by_how_they_ended(told, runtime, queued):
    stop = RequestStop(space="default", command_id=new_id(), actor="test", run_id=queued.run_id)
    commit = runtime.engine.coordinator.commit
    commit(stop).result()
    commit(stop).result()
    with pytest.raises(RunNotFound):
        commit(RequestStop(space="default", command_id=new_id(), actor="test", run_id="nobody")).result()
    found = told.points("command_duration_seconds")
    ended = {labels[1]: point.count for labels, point in found.items() if labels[0] == "request_stop"}
    assert ended == {"committed": 1, "replayed": 1, "RUN_NOT_FOUND": 1}
    assert all(point.sum > 0 for point in found.values())
    assert len(found["request_stop", "committed"].explicit_bounds) == 14


def test_a_stale_writer_is_a_conflict_of_its_put(told, runtime, open_runtime):
    saver = runtime.checkpointer
    saver.put(at(), new_checkpoint({"a": 1}), {}, {})
    loaded = saver.get_tuple(at())
    other = open_runtime().checkpointer
    other.put(other.get_tuple(at()).config, new_checkpoint({"a": 2}), {}, {})
    with pytest.raises(StaleWriter):
        saver.put(loaded.config, new_checkpoint({"a": 2}), {}, {})
    assert told.counts("run_transition_conflict_total")["put_thread_checkpoint",] == 1


def test_a_command_that_waits_for_a_busy_database_is_counted_as_retried(told, runtime, queued):
    holder = sqlite3.connect(runtime.engine.url.location, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as thread:
        moved = thread.submit(queued.now)
        wait_until(lambda: told.counts("command_retry_total")["move_to_front", "STORE_BUSY"], "a retry")
        holder.execute("ROLLBACK")
        assert moved.result() == "queued"
    holder.close()


def test_a_lease_that_ran_out_under_its_holder_is_counted_once(told, runtime, raw):
    def node(_):
        run_out(raw)
        return {"log": ["x"]}

    with pytest.raises(LeaseExpired):
        runtime.bind(chain({"node": node, "after": says("y")}), name="g").invoke({"log": []}, config())
    assert told.counts("lease_lost_total") == {("LEASE_EXPIRED",): 1}


def test_what_became_of_an_attempt_that_nobody_held_is_counted(told, runtime, works, raw):
    def node(_):
        run_out(raw)
        return {"log": ["x"]}

    with pytest.raises(LeaseExpired):
        runtime.bind(chain({"node": node, "after": says("y")}), name="g").invoke({"log": []}, config())
    works({"g": chain({"node": says("x"), "after": says("y")})})
    assert told.counts("run_reconcile_total") == {("lost",): 1, ("taken_over",): 1}


def test_reports_that_changed_nothing_are_counted_by_why(told, runtime, queued, works):
    seen = []

    def node(_):
        owned = get_config()["configurable"]["__pregel_checkpointer"].owned_run
        for sequence in (1, None):
            report = ReportAttemptEvent(
                command_id=new_id(),
                space="default",
                run_id=owned.lease.run_id,
                epoch=owned.lease.epoch,
                attempt_id=owned.attempt_id,
                sequence=sequence,
            )
            seen.append(type(owned.coordinator.commit(report).exception()))
        return {"log": ["x"]}

    works({"g": chain({"node": node})})
    assert seen == [ReportIgnored, ReportIgnored]
    assert told.counts("attempt_late_callback_total") == {("duplicate",): 1, ("missing_sequence",): 1}


@on_both
def test_the_sizes_of_commits_add_up_to_the_commands(told, runtime, queued, works):
    works({"g": chain({"node": says("x")})})
    committed = sum(
        point.count for labels, point in told.points("command_duration_seconds").items() if labels[1] == "committed"
    )
    ((labels, batches),) = told.points("commit_batch_size").items()
    assert labels == (runtime.engine.url.dialect,)
    assert batches.sum >= committed  # and commands that a refused batch committed alone


@on_both
def test_a_worker_tells_how_many_runs_wait_and_how_old_the_oldest_is(told, runtime, queued, works, raw):
    runtime.runs.start("g", {"log": []})
    raw.rows("UPDATE rp_runs SET created_us = created_us - 60000000 WHERE run_id = ?", queued.run_id)
    works({"other": chain({"node": says("x")})})
    ages = {labels[0]: point.value for labels, point in told.points("run_non_terminal_age_seconds").items()}
    assert ages.keys() == {"created", "queued", "dispatching", "running", "waiting_approval", "retry_wait", "lost"}
    assert ages.pop("queued") > 60
    assert set(ages.values()) == {0}
    assert told.counts("run_queue_depth") == {("g",): 2}
    works({"g": chain({"node": says("x")})})
    works({"other": chain({"node": says("x")})})
    assert told.counts("run_queue_depth") == {("g",): 0}


def test_labels_have_few_values_whatever_the_ids_and_errors_are(told, runtime, works):
    graphs = {"g": chain({"node": fails(ValueError("secret text"))})}
    runtime.bind(graphs["g"], name="g")
    for n in range(5):
        runtime.runs.start("g", {"log": [n]}, thread_id=f"thread {n}", idempotency_key=f"key {n}")
    works(graphs)
    found = told.names()
    declared = {metric.name: set(metric.labels) for metric in METRICS}
    assert {name: set(labels) for name, labels in found.items()} == {name: declared[name] for name in found}
    commands = {spec.name for spec in COMMANDS.values()}
    states = {status.value for status in RunStatus} | {"none"}
    said = found["run_transition_total"]
    assert said["from"] | said["to"] <= states
    assert found["command_duration_seconds"]["command"] <= commands
    assert found["command_duration_seconds"]["result"] <= {"committed", "replayed"}
    texts = {value for labels in found.values() for values in labels.values() for value in values}
    assert not any("thread " in text or "key " in text or "secret" in text for text in texts)
