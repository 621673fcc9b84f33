"""Whoever waits is woken: in this process, in another one, after a lost connection, and not at all behind a pooler.

Where a test would also pass by looking from time to time, the pauses between two looks are an hour.
"""

import asyncio
import threading
from pathlib import Path

import pytest

from runtime_persist import Runtime
from runtime_persist.drivers.socket_bus import SUFFIX
from runtime_persist.runtime.events import Pauses
from runtime_persist.testing.pooler import TransactionPooler
from runtime_persist.worker import Worker
from tests.events import programs
from tests.events.conftest import hears
from tests.fixtures.raw import PostgresRaw, wait_until
from tests.support.graphs import asks, chain, says

HOUR = 3_600.0  # of a look that no test waits for
GRAPH = {"g": chain({"node": says("x")})}


@pytest.fixture
def patient(monkeypatch):
    """Nobody looks again by himself."""
    monkeypatch.setattr(Pauses, "after", lambda _self, *, found: HOUR)


@pytest.fixture
def runtime(open_runtime):
    made = open_runtime()
    made.bind(GRAPH["g"], name="g")
    return made


def listening(runtime):
    """Hear other processes, as somebody who waits does."""
    subscription = runtime.engine.notifications.subscribe("nothing", lambda _: None)
    hears(runtime)
    return subscription


async def test_a_worker_begins_a_run_that_another_process_queues_and_its_end_wakes_who_waits(
    runtime, works, way, patient
):
    with works(GRAPH, poll_seconds=HOUR), listening(runtime):
        for n in range(3):
            run = await way(runtime.runs, "start", "g", {"log": [n]}, thread_id="t")
            assert (await way(run, "result", timeout=30))["log"][-1] == "x"


def test_real_processes_wake_one_another(runtime, works, shared_url, fork):
    with works(GRAPH, poll_seconds=HOUR):
        queued = fork(programs.starter, shared_url)
        queued.until("ready")
        queued.give_the_word()
        assert runtime.runs.result(queued.result(), timeout=30)["log"] == ["x"]


def test_a_waiting_process_is_woken_by_another_ones_worker(runtime, works, shared_url, fork):
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    waiting = fork(programs.waiter, shared_url, run.run_id)
    waiting.until("ready")
    with works(GRAPH):
        assert waiting.result()["log"] == ["x"]


def test_the_next_run_of_a_thread_begins_when_the_one_before_has_ended(runtime, works, patient):
    runs = [runtime.runs.start("g", {"log": [n]}, thread_id="t") for n in range(3)]
    with works(GRAPH, poll_seconds=HOUR), listening(runtime):
        assert runs[-1].result(timeout=30)["log"] == [0, "x", 1, "x", 2, "x"]


def test_a_question_wakes_who_follows_the_run(runtime, works, patient):
    graphs = {"asks": chain({"ask": asks("why?")})}
    runtime.bind(graphs["asks"], name="asks")
    run = runtime.runs.start("asks", {"log": []}, thread_id="t")
    with works(graphs), listening(runtime):
        for event in run.events(wait=True):
            if event.type == "run.waiting_approval":
                break
    assert run.record().status == "waiting_approval"


def test_a_hint_before_somebody_waits_is_not_lost(runtime):
    notifications = runtime.engine.notifications
    with notifications.watch("topic") as watch:
        notifications.publish("topic", b"")
        watch.next(HOUR).result(10)
        waiting = watch.next(HOUR)
        assert not waiting.done()
        notifications.publish("topic", b"")
        waiting.result(10)


def test_closing_wakes_who_still_waits(open_runtime):
    runtime = open_runtime()
    watch = runtime.engine.notifications.watch("topic")
    waiting = watch.next(HOUR)
    runtime.close()
    waiting.result(10)


@pytest.mark.parametrize("size", [0, 1, 6_200, 6_201, 300_000])
def test_a_message_of_any_size_arrives_whole_in_another_process(open_runtime, size):
    sender, receiver = open_runtime(), open_runtime()
    message, arrived, got = bytes(n % 251 for n in range(size)), threading.Event(), []

    def receive(found):
        if found is not None:
            got.append(found)
            arrived.set()

    with receiver.engine.notifications.subscribe("topic", receive):
        hears(receiver)
        sender.engine.notifications.publish("topic", message)
        assert arrived.wait(20)
        sender.engine.notifications.publish("topic of others", b"x")
    assert got == [message]


def test_a_file_has_no_folder_of_sockets_when_nobody_is_left(sqlite_url):
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with Runtime.open(sqlite_url) as first, Runtime.open(sqlite_url) as second:
        for runtime in (first, second):
            runtime.engine.notifications.subscribe("topic", lambda _: None)
        assert len(list(Path(f"{path}{SUFFIX}").iterdir())) == 2
    assert not Path(f"{path}{SUFFIX}").exists()


def test_a_killed_process_leaves_a_socket_that_the_next_sender_removes(sqlite_url, fork, opened):
    runtime = opened(Runtime.open(sqlite_url))
    runtime.bind(GRAPH["g"], name="g")
    run = runtime.runs.start("g", {"log": []}, thread_id="t")
    child = fork(programs.waiter, sqlite_url, run.run_id)
    child.until("ready")
    child.kill()
    folder = Path(sqlite_url.removeprefix("sqlite:///") + SUFFIX)
    left = {path.name for path in folder.iterdir()}
    assert left

    def told():
        for name in left:
            runtime.engine.notifications._bus.publish(name.partition(".")[0], b"x")
        return not left & {path.name for path in folder.iterdir()}

    wait_until(told, "its sockets are removed")


# --- PostgreSQL: the connection that listens ------------------------------------------------------------------------


def listeners(raw):
    return raw.rows("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")


def test_a_connection_that_listens_is_opened_again_when_it_is_lost(postgres_url, opened, patient):
    raw = opened(PostgresRaw(postgres_url))
    waiting, other = opened(Runtime.open(postgres_url)), opened(Runtime.open(postgres_url))
    other.bind(GRAPH["g"], name="g")
    run = other.runs.start("g", {"log": []}, thread_id="t")
    with listening(waiting):
        (before,) = listeners(raw)
        raw.rows("SELECT pg_terminate_backend(?)", before["pid"])
        wait_until(lambda: [row for row in listeners(raw) if row != before], "it listens again")
        hears(waiting)
        worker = Worker(other, GRAPH, poll_seconds=0.02)
        thread = threading.Thread(target=worker.run)
        thread.start()
        assert waiting.runs.result(run.run_id, timeout=30)["log"] == ["x"]
        worker.stop()
        thread.join()


def test_who_waited_while_the_connection_was_lost_is_woken_to_look(postgres_url, opened):
    raw = opened(PostgresRaw(postgres_url))
    runtime = opened(Runtime.open(postgres_url))
    with runtime.engine.notifications.watch("topic") as watch:
        hears(runtime)
        watch.next(HOUR).result(10)  # that it listens now was a reason to look
        waiting = watch.next(HOUR)
        (listener,) = listeners(raw)
        raw.rows("SELECT pg_terminate_backend(?)", listener["pid"])
        waiting.result(20)


def test_closing_ends_who_listens_also_in_the_moment_in_which_the_first_message_arrives(postgres_url, monkeypatch):
    """A cancellation that was lost there left the connection open and its task pending."""
    runtime = Runtime.open(postgres_url)
    bus = runtime.engine.notifications._driver.open_bus()
    arrived, ended = bus._arrived, threading.Event()

    def arrives(*message):
        arrived(*message)
        asyncio.get_running_loop().create_task(bus.end()).add_done_callback(lambda _: ended.set())

    monkeypatch.setattr(bus, "_arrived", arrives)
    bus.subscribe("channel", lambda _message: None)
    assert ended.wait(20)
    assert bus._listening.done()
    runtime.close()


def test_behind_a_transaction_pooler_nothing_is_heard_that_is_noticed_and_runs_are_found_by_looking(
    postgres_server, postgres_url, caplog
):
    with (
        TransactionPooler("127.0.0.1", postgres_server.port, sessions=2) as pooler,
        Runtime.open(pooler.dsn(postgres_url)) as runtime,
    ):
        runtime.bind(GRAPH["g"], name="g")
        worker = Worker(runtime, GRAPH, poll_seconds=0.02)
        thread = threading.Thread(target=worker.run)
        thread.start()
        wait_until(lambda: "nothing arrives" in caplog.text, "it is noticed")
        assert not runtime.engine.notifications.hears
        assert runtime.runs.start("g", {"log": []}, thread_id="t").result(timeout=30)["log"] == ["x"]
        worker.stop()
        thread.join()


def test_what_others_send_on_a_channel_is_left_alone(postgres_url, opened, caplog):
    raw = opened(PostgresRaw(postgres_url))
    runtime = opened(Runtime.open(postgres_url))
    got, heard = [], threading.Event()

    def receive(message):
        if message is not None:
            got.append(message)
            heard.set()

    with runtime.engine.notifications.subscribe("topic", receive):
        hears(runtime)
        channel = runtime.engine.notifications._channel("topic")
        for text in ("", "hello", "a:b:c:d:e", "f00:1:1:0:\u00fc"):
            raw.rows("SELECT pg_notify(?, ?)", channel, text)
        with Runtime.open(postgres_url) as other:
            other.engine.notifications.publish("topic", b"ours")
            assert heard.wait(20)
    assert got == [b"ours"]
    assert "did not send" in caplog.text
