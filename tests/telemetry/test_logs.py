"""Structured logs: every record of an attempt says which one it is, and no record says what was in it."""

import json
import logging

import pytest

from runtime_persist.errors import LeaseLost
from runtime_persist.telemetry import JsonFormatter, RunFilter, logger
from runtime_persist.telemetry.logs import FIELDS
from runtime_persist.worker import Worker
from tests.support.graphs import chain, config, fails, says

users = logging.getLogger("the user's own")


class Kept(logging.Handler):
    """Keeps the lines of its formatter."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = []
        self.addFilter(RunFilter())
        self.setFormatter(JsonFormatter())

    def emit(self, record):
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def kept():
    handler = Kept()
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler.lines
    root.removeHandler(handler)
    root.setLevel(level)


def said(kept, message):
    return [line for line in kept if line["message"] == message]


async def test_a_nodes_own_log_lines_name_its_attempt(kept, runtime, way):
    def node(_):
        users.info("in the node")
        return {"log": ["x"]}

    await way(runtime.bind(chain({"node": node}), name="g"), "invoke", {"log": []}, config("a thread"))
    users.info("behind it")
    (line,) = said(kept, "in the node")
    (record,) = runtime.runs.list()
    assert {name: line[name] for name in FIELDS if name != "attempt_id"} == {
        "run_id": record.run_id,
        "epoch": 1,
        "graph": "g",
        "thread_id": "a thread",
    }
    assert len(line["attempt_id"]) == 36
    (behind,) = said(kept, "behind it")
    assert not set(FIELDS) & behind.keys()


async def test_a_stream_does_not_give_its_caller_its_facts(kept, runtime, way):
    durable = runtime.bind(chain({"a": says("a"), "b": says("b")}), name="g")
    if way.asynchronous:
        async for _ in durable.astream({"log": []}, config()):
            users.info("between")
    else:
        for _ in durable.stream({"log": []}, config()):
            users.info("between")
    assert len(said(kept, "between")) == 2
    assert all("run_id" not in line for line in said(kept, "between"))


def test_a_workers_lines_have_the_facts_and_no_texts_of_errors(kept, runtime):
    graphs = {"g": chain({"node": fails(ValueError("the customer's name"))})}
    runtime.bind(graphs["g"], name="g")
    run = runtime.runs.start("g", {"log": ["the input"]}, thread_id="t")
    Worker(runtime, graphs, poll_seconds=0.01).run(until_idle=True)
    (claimed,), (stopped,) = said(kept, "claimed"), said(kept, "stopped")
    assert (claimed["run_id"], claimed["epoch"], claimed["graph"], claimed["thread_id"]) == (run.run_id, 1, "g", "t")
    assert (stopped["run_id"], stopped["code"], stopped["logger"]) == (
        run.run_id,
        "ValueError",
        "runtime_persist.worker",
    )
    assert "customer" not in json.dumps(kept)
    assert "the input" not in json.dumps(kept)


def test_secrets_are_taken_out_of_messages_and_errors():
    kept = Kept()
    record = logging.LogRecord("x", logging.ERROR, "f.py", 1, "connect to %s", ("pg://u:hunter2@h/db",), None)
    kept.handle(record)
    log = logging.getLogger("errors")
    log.addHandler(kept)
    try:
        fails(LeaseLost("refused with api_key=hunter2"))({})
    except LeaseLost:
        log.exception("it failed")
    log.removeHandler(kept)
    assert "hunter2" not in json.dumps(kept.lines)
    error = kept.lines[-1]["error"]
    assert (error["type"], error["code"]) == ("LeaseLost", "LEASE_LOST")
    assert "test_secrets_are_taken_out" in error["at"][0]


def test_a_plain_format_string_may_use_the_fields_in_and_outside_of_attempts():
    kept = []

    class Plain(logging.Handler):
        def emit(self, record):
            kept.append(self.format(record))

    handler = Plain()
    handler.addFilter(RunFilter())
    handler.setFormatter(logging.Formatter("%(run_id)s %(epoch)s %(message)s"))
    own = logger("runtime_persist.test_logs")
    for target in (own.logger, users):
        target.addHandler(handler)
    own.warning("ours", extra={"run_id": "r", "epoch": 3})
    own.warning("outside")
    users.warning("theirs")
    for target in (own.logger, users):
        target.removeHandler(handler)
    assert kept == ["r 3 ours", "None None outside", "None None theirs"]


def test_what_json_has_no_form_for_does_not_break_a_line():
    kept = Kept()
    log = logger("runtime_persist.test_logs")
    log.logger.addHandler(kept)
    log.logger.propagate = False  # what collects the test's output has no form for it either
    try:
        log.warning("half of an emoji: \ud83d and a NUL: \0", extra={"code": object()})
    finally:
        log.logger.propagate = True
        log.logger.removeHandler(kept)
    (line,) = kept.lines
    assert line["message"] == "half of an emoji: \\ud83d and a NUL: \\0"
