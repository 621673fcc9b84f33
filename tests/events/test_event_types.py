"""The table of events: nothing else is ever written, and nothing stands in it that is never said."""

import ast
from pathlib import Path

import pytest

import runtime_persist
from runtime_persist.commands.parts import events
from runtime_persist.commands.parts.spec import Event
from runtime_persist.errors import InvariantBroken
from runtime_persist.model import limits
from runtime_persist.model.event_types import EVENT_FIELDS, WAKES
from runtime_persist.model.states import AttemptStatus, RunStatus

PACKAGE = Path(runtime_persist.__file__).parent
TELLS = {"tell": 0, "Event": 0, "hot": 1}
BY_STATUS = {f"run.{status}" for status in RunStatus} | {f"attempt.{status}" for status in AttemptStatus}


def told():
    """The types that stand as texts in calls that append an event."""
    for path in (PACKAGE / "commands").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            place = TELLS.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
            if place is not None and len(node.args) > place and isinstance(node.args[place], ast.Constant):
                yield node.args[place].value


def texts():
    """Every text in the code of commands."""
    for path in (PACKAGE / "commands").rglob("*.py"):
        yield from (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))


def test_the_table_has_what_is_said_and_nothing_else():
    said = set(told())
    assert len(said) > 10
    assert said - set(EVENT_FIELDS) == set()
    assert set(EVENT_FIELDS) - set(texts()) - BY_STATUS == set()
    assert set(EVENT_FIELDS) >= WAKES


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("run.invented", {}), ("run.created", {"graph": "g", "input": "secret"}), ("run.queued", {"prompt": "x"})],
)
def test_an_unknown_event_or_field_is_a_bug(kind, payload):
    with pytest.raises(InvariantBroken, match=r"event_types\.py"):
        events.packed(kind, payload)


def test_a_command_that_says_too_much_writes_nothing(world, monkeypatch):
    """The table is asked inside the transaction: it is not a convention."""
    command = world.start_run()
    too_much = {"input": "the whole of it"}
    monkeypatch.setattr("runtime_persist.commands.start_run.Event", lambda kind, *_: Event(kind, too_much))
    with world.nothing_written(), pytest.raises(InvariantBroken):
        world.commit(command)


def test_a_payload_over_the_limit_leaves_its_size(world):
    long = "x" * limits.EVENT_PAYLOAD_BYTES_MAX
    run_id = world.queued(graph=long)
    stored = world.raw.value("SELECT payload FROM rp_events WHERE run_id = ? AND seq = 1", run_id)
    assert b"left_out_bytes" in bytes(stored)
    assert len(stored) < 100
