"""Live streams: the chunks of the attempt that executes a run now, in whatever process that is."""

import itertools
import threading

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer

from runtime_persist.engine.wishes import of_stream
from runtime_persist.errors import InvalidInput, RunNotFound
from runtime_persist.model import limits
from runtime_persist.model.streams import BEGIN, CHUNK, Frame
from runtime_persist.worker import SubprocessRuntime
from tests.events import child_graphs, programs
from tests.fixtures.raw import wait_until
from tests.support.graphs import asks, chain, resume, says
from tests.support.leases import run_out


def writes(*chunks):
    """A node that streams chunks."""

    def node(_):
        write = get_stream_writer()
        for chunk in chunks:
            write(chunk)
        return {"log": ["written"]}

    return node


GRAPH = {"g": chain({"node": writes(1, 2), "after": says("after")})}


class Gate:
    """A run in front of those of its thread: none of them begins before it is opened."""

    def __init__(self, runtime) -> None:
        self._open = threading.Event()
        self.graphs = {"gate": chain({"waits": lambda _: self._open.wait(30) and {"log": []}})}
        runtime.bind(self.graphs["gate"], name="gate")
        runtime.runs.start("gate", {"log": []}, thread_id="t")

    def open(self):
        self._open.set()


@pytest.fixture
def runtime(open_runtime):
    made = open_runtime()
    made.bind(GRAPH["g"], name="g")
    return made


@pytest.fixture
def gate(runtime):
    made = Gate(runtime)
    yield made
    made.open()


@pytest.fixture
def start(runtime, gate):
    """Queue a run of a graph behind the gate."""

    def started(graph=GRAPH["g"]):
        runtime.bind(graph, name="g")
        return runtime.runs.start("g", {"log": []}, thread_id="t")

    return started


@pytest.fixture
def run(runtime):
    return runtime.runs.start("g", {"log": []}, thread_id="t")


def said(chunks):
    return [(chunk.mode, chunk.data) for chunk in chunks if chunk.mode != "attempt"]


class Reader:
    """Reads a stream on a thread, and tells when it has come so far."""

    def __init__(self, run, *modes, **options) -> None:
        self.chunks = []
        self._more = threading.Condition()
        self._stream = run.stream(list(modes), **options)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        for chunk in self._stream:
            with self._more:
                self.chunks.append(chunk)
                self._more.notify_all()

    def saw(self, mode, data):
        """Whether such a chunk came, a moment at the latest after now."""
        with self._more:
            return self._more.wait_for(lambda: any((c.mode, c.data) == (mode, data) for c in self.chunks), timeout=0.2)

    def until(self, mode, data=...):
        with self._more:
            assert self._more.wait_for(
                lambda: any(c.mode == mode and data in (..., c.data) for c in self.chunks), timeout=30
            ), self.chunks

    def all(self):
        self.thread.join(30)
        assert not self.thread.is_alive(), self.chunks
        return self.chunks


def reading(worker, run, *modes, **options):
    """A reader of whom the worker has heard."""
    reader = Reader(run, *modes, **options)
    wait_until(lambda: worker.engine.wishes.of(run.run_id)[0] >= set(modes), "it has heard of the reader")
    return reader


async def test_who_reads_before_the_run_begins_gets_everything_to_its_result(start, gate, works, way):
    run = start()
    with works(gate.graphs | GRAPH) as worker:
        opens = threading.Thread(
            target=lambda: (wait_until(lambda: worker.engine.wishes.is_wanted(run.run_id), "it is read"), gate.open())
        )
        opens.start()
        found = await way.all(run, "stream", ["values", "updates", "custom"])
        opens.join()
    first, *_ = found
    assert (first.mode, first.epoch) == ("attempt", 1)
    assert first.data == {"cause": "initial", "attempt_no": 1, "missing": []}
    assert [(mode, data.get("log", data) if isinstance(data, dict) else data) for mode, data in said(found)] == [
        ("values", []),
        ("custom", 1),
        ("custom", 2),
        ("updates", {"node": {"log": ["written"]}}),
        ("values", ["written"]),
        ("updates", {"after": {"log": ["after"]}}),
        ("values", ["written", "after"]),
        ("end", found[-1].data),
    ]
    assert (found[-1].data["status"], found[-1].data["result"]["log"]) == ("succeeded", ["written", "after"])
    assert {(chunk.attempt_id, chunk.epoch, chunk.ns) for chunk in found} == {(first.attempt_id, 1, ())}


def say(worker, word, reader=None):
    """Let a worker process stream a word; with a reader: again and again, until he has heard of it."""
    worker.give_the_word(word)
    while word is not None and reader is not None and not reader.saw("custom", word):
        worker.until("wrote")
        worker.give_the_word(word)


def test_a_killed_workers_stream_goes_on_with_the_next_ones_and_says_so(run, shared_url, fork, raw):
    reader = Reader(run, "custom")
    first = fork(programs.streaming_worker, shared_url)
    first.until("in node")
    say(first, "one", reader)
    first.kill()
    run_out(raw)
    second = fork(programs.streaming_worker, shared_url)
    second.until("in node")
    say(second, "two", reader)
    say(second, "three")
    say(second, None)
    found = [chunk for chunk in reader.all() if chunk.mode != "dropped"]
    modes = [(mode, epoch) for (mode, epoch), _ in itertools.groupby((chunk.mode, chunk.epoch) for chunk in found)]
    assert modes == [("attempt", 1), ("custom", 1), ("attempt", 2), ("custom", 2), ("end", 2)]
    assert [chunk.data["cause"] for chunk in found if chunk.mode == "attempt"] == ["initial", "takeover"]
    assert found[-1].data["result"]["log"][-2:] == ["three", "after"]
    assert found[-2].data == "three"


def test_of_two_readers_each_gets_all_and_a_late_one_what_comes_from_then_on(run, shared_url, fork):
    readers = [Reader(run, "custom") for _ in range(2)]
    worker = fork(programs.streaming_worker, shared_url)
    worker.until("in node")
    for reader in readers:
        say(worker, "one", reader)
    late = Reader(run, "custom", "messages")
    late.until("attempt")
    assert late.chunks[0].data["missing"] == ["messages"]  # the attempt had begun without
    say(worker, "two")
    say(worker, None)
    for reader in (*readers, late):
        *_, last, end = reader.all()
        assert (last.mode, last.data) == ("custom", "two")
        assert (end.mode, end.data["status"]) == ("end", "succeeded")
    assert "one" not in [chunk.data for chunk in late.chunks[2:]]


def test_messages_come_token_by_token_to_who_wanted_them_before_the_attempt_began(start, gate, works):
    model = GenericFakeChatModel(messages=itertools.cycle([AIMessage("why not ?")]))
    graph = chain({"model": lambda _: {"log": [model.invoke("why?").content]}})
    run = start(graph)
    with works(gate.graphs | {"g": graph}) as worker:
        reader = reading(worker, run, "messages")
        gate.open()
        found = reader.all()
    tokens = [chunk.data[0].content for chunk in found if chunk.mode == "messages"]
    assert len(tokens) > 1
    assert "".join(tokens) == "why not ?"


def test_subgraphs_stream_to_who_wants_them(start, gate, works):
    graph = chain({"inner": chain({"inside": writes("deep")})})
    run = start(graph)
    with works(gate.graphs | {"g": graph}) as worker:
        deep, flat = reading(worker, run, "custom", subgraphs=True), reading(worker, run, "custom")
        gate.open()
        (chunk,) = [chunk for chunk in deep.all() if chunk.mode == "custom"]
        assert chunk.data == "deep"
        assert chunk.ns[0].startswith("inner:")
        assert [chunk for chunk in flat.all() if chunk.mode == "custom"] == []


def test_an_answer_is_another_attempt_of_the_same_stream(runtime, start, gate, works):
    graph = chain({"ask": asks("why?")})
    run = start(graph)
    with works(gate.graphs | {"g": graph}) as worker:
        reader = reading(worker, run, "updates")
        gate.open()
        reader.until("updates")
        for event in run.events(wait=True):
            if event.type == "run.waiting_approval":
                break
        runtime.runs.answer(run.run_id, resume("because"))
        found = reader.all()
    assert [chunk.data["cause"] for chunk in found if chunk.mode == "attempt"] == ["initial", "resume"]
    assert "__interrupt__" in next(chunk.data for chunk in found if chunk.mode == "updates")
    assert found[-1].data["result"]["log"] == ["because"]


def test_a_failed_run_ends_the_stream_with_its_error(start, gate, works):
    def node(_):
        get_stream_writer()("before")
        msg = "no luck"
        raise ValueError(msg)

    graph = chain({"node": node})
    run = start(graph)
    with works(gate.graphs | {"g": graph}) as worker:
        reader = reading(worker, run, "custom")
        gate.open()
        (first, last) = said(reader.all())
    assert first == ("custom", "before")
    assert (last[0], last[1]["status"], last[1]["error_code"]) == ("end", "failed", "ValueError")


def test_large_chunks_arrive_whole_and_too_large_ones_are_counted(start, gate, works):
    large = "x" * (limits.STREAM_CHUNK_BYTES_MAX // 2)
    graph = chain({"node": writes(large, large * 3, object(), "small")})
    run = start(graph)
    with works(gate.graphs | {"g": graph}) as worker:
        reader = reading(worker, run, "custom")
        gate.open()
        found = said(reader.all())
    assert found[:-1] == [("custom", large), ("dropped", {"chunks": 2}), ("custom", "small")]


def test_a_reader_that_is_too_slow_misses_chunks_is_told_and_never_holds_the_run_up(start, gate, works, monkeypatch):
    monkeypatch.setattr(limits, "STREAM_WAITING_CHUNKS_MAX", 5)
    graph = chain({"fast": writes(*range(100)), "last": writes("last")})
    run = start(graph)
    stream = run.stream("custom")
    with works(gate.graphs | {"g": graph}) as worker:
        opens = threading.Thread(
            target=lambda: (wait_until(lambda: worker.engine.wishes.is_wanted(run.run_id), "it is read"), gate.open())
        )
        opens.start()
        assert next(stream).mode == "attempt"  # it hears from here on, and reads no more before the run has ended
        run.result(timeout=30)
        found = list(stream)
        opens.join()
    assert len(found) < 20
    assert {chunk.mode for chunk in found} <= {"custom", "dropped", "end"}
    assert found[-1].data["status"] == "succeeded"


@pytest.fixture(scope="module")
def children():
    """One spawner of child processes."""
    with SubprocessRuntime("tests.events.child_graphs:registry") as made:
        yield made


def test_an_attempt_in_a_child_process_streams_as_one_in_the_worker(start, gate, works, children):
    run = start(child_graphs.registry["g"].graph)
    with works(gate.graphs | child_graphs.registry, runtimes=[children]) as worker:
        reader = reading(worker, run, "custom", "messages")
        gate.open()
        first, *found, end = reader.all()
    assert first.data["missing"] == []
    assert [chunk.data for chunk in found if chunk.mode == "custom"] == ["from the child"]
    assert "".join(chunk.data[0].content for chunk in found if chunk.mode == "messages") == "why not ?"
    assert end.data["result"]["log"] == ["why not ?"]


async def test_who_comes_when_the_run_has_ended_gets_its_end(run, works, way):
    with works(GRAPH):
        run.result(timeout=30)
    (end,) = await way.all(run, "stream")
    assert (end.mode, end.data["result"]["log"]) == ("end", ["written", "after"])


def test_what_a_writer_streams_that_was_taken_over_from_is_not_read(runtime, run):
    stream = run.stream("custom")
    frames = [Frame(BEGIN, "new", 2, 0, "custom")]
    frames.append(Frame(CHUNK, "new", 2, 0, "custom", (), *runtime.checkpointer.serde.dumps_typed("new")))
    frames.append(Frame(CHUNK, "old", 1, 7, "custom", (), *runtime.checkpointer.serde.dumps_typed("old")))
    frames.append(Frame(CHUNK, "new", 2, 1, "custom", (), *runtime.checkpointer.serde.dumps_typed("newer")))
    asked = threading.Event()
    with runtime.engine.notifications.subscribe("wishes", lambda _: asked.set()):
        send = threading.Thread(
            target=lambda: (
                asked.wait(30),
                [runtime.engine.notifications.publish(of_stream(run.run_id), frame.encoded()) for frame in frames],
            )
        )
        send.start()
        found = [next(stream) for _ in range(3)]
        send.join()
    stream.close()
    assert [(chunk.mode, chunk.epoch) for chunk in found] == [("attempt", 2), ("custom", 2), ("custom", 2)]
    assert [chunk.data for chunk in found[1:]] == ["new", "newer"]


def test_nothing_is_sent_that_nobody_reads(runtime, run, works, monkeypatch):
    with works(GRAPH) as other:
        sent = []
        publish = other.engine.notifications.publish
        monkeypatch.setattr(other.engine.notifications, "publish", lambda *what: (sent.append(what), publish(*what)))
        run.result(timeout=30)
    assert len(sent) <= 1  # that it begins


async def test_a_mode_that_is_none_and_a_run_that_is_none_are_refused(runtime, run, way):
    for modes in ("value", [], ["custom", "x"]):
        with pytest.raises(InvalidInput, match="stream_mode"):
            await way.all(run, "stream", modes)
    with pytest.raises(RunNotFound):
        await way.all(runtime.runs, "stream", "nobody")
