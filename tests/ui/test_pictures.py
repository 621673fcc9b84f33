"""The pure parts: the timeline's scale and bars, what differs between checkpoints, and the status as SQL says it."""

import itertools
import json

import pytest

from runtime_persist.engine import run as flow
from runtime_persist.inspector.bundle import AttemptView, BundleView, CheckpointView, OperationView, TryView
from runtime_persist.inspector.database import DatabaseView
from runtime_persist.model.evidence import Observed
from runtime_persist.model.payload import PayloadRef
from runtime_persist.model.records import RunRecord
from runtime_persist.model.shown import shown_status
from runtime_persist.model.states import Control, LeasePhase, RunStatus
from runtime_persist.queries.run_list import Wanted
from runtime_persist.ui import changes
from runtime_persist.ui.loading import load_runs
from runtime_persist.ui.timeline import LABELS, OPERATIONS_MAX, WIDTH, timeline
from tests.support.graphs import chain, config, says

SECOND = 1_000_000
HOUR = 3_600 * SECOND
T0 = 1_796_102_700_000_000


def attempt(number, begin, end, status="succeeded", cause="initial"):
    return AttemptView(
        attempt_no=number, attempt_id=str(number), status=status, cause=cause, epoch=number, worker_id="w",
        claimed_us=begin, start_requested_us=begin, ended_us=end, termination_reason=None, error_code=None,
    )  # fmt: skip


def operation(number, begin, end, shown="succeeded"):
    tried = TryView(
        try_no=1, status=shown, shown=shown, epoch=1, run_id="r", error_type=None, started_us=begin, ended_us=end
    )
    return OperationView(
        operation_id=str(number), name=f"call {number}", ordinal="1", checkpoint_ns="", status="succeeded",
        phase="completed", on_unknown="ask", request="", idempotency_key="k", error_type=None, error_text=None,
        tries=[tried],
    )  # fmt: skip


def view(attempts=(), operations=(), checkpoints=(), **run):
    said = {
        "run_id": "r", "graph": "g", "thread_id": "t", "status": "running", "shown": "running", "control": "open",
        "stop_reason": None, "epoch": 1, "phase": "active", "worker_id": "w", "expires_us": T0 + HOUR, "attempt_no": 1,
        "takeovers": 0, "failures": 0, "next_attempt_us": None, "deadline_us": None, "graph_version": None,
        "priority": 0, "scope": None, "retry_of_run_id": None, "idempotency_key": None, "error_code": None,
        "error_summary": None, "created_us": T0, "finished_us": None, **run,
    }  # fmt: skip
    stored = [
        CheckpointView(
            checkpoint_ns="", checkpoint_id=str(us), parent_id=None, epoch=1, step=1, source="loop", created_us=us
        )
        for us in checkpoints
    ]
    return BundleView(
        run=RunRecord(**said), database=DatabaseView(dialect="sqlite", version="3", url=""), question=None,
        attempts=list(attempts), checkpoints=stored, operations=list(operations), domains=[], events=[], recovery=[],
    )  # fmt: skip


def bars(picture):
    return [bar for row in (picture.attempts, *picture.operations) for bar in row.bars]


def test_bars_are_in_the_order_and_proportion_of_time_and_inside_the_picture():
    picture = timeline(
        view(
            [attempt(1, T0, T0 + 4 * SECOND)],
            [operation(1, T0 + SECOND, T0 + 2 * SECOND), operation(2, T0 + 2 * SECOND, T0 + 4 * SECOND)],
            [T0 + SECOND],
        ),
        T0 + 4 * SECOND,
    )
    first, one, two = bars(picture)
    assert first.x == LABELS
    assert one.width == pytest.approx(first.width / 4, abs=1)
    assert two.width == pytest.approx(first.width / 2, abs=1)
    assert two.x == pytest.approx(one.x + one.width, abs=1)
    assert picture.checkpoints == [one.x]
    assert picture.breaks == []
    assert max(bar.x + bar.width for bar in bars(picture)) <= WIDTH


def test_a_long_wait_is_a_break_that_says_its_length_and_takes_nothing_from_what_happened():
    attempts = [attempt(1, T0, T0 + SECOND, "yielded"), attempt(2, T0 + HOUR, T0 + HOUR + SECOND, cause="resume")]
    picture = timeline(view(attempts), T0 + HOUR + SECOND)
    assert [mark.label for mark in picture.breaks] == ["59 min 59 s"]
    one, two = picture.attempts.bars
    assert one.width == pytest.approx(two.width, abs=1)
    assert one.width > 300


def test_epochs_are_bands_and_a_takeover_is_a_mark_where_it_claimed():
    attempts = [attempt(1, T0, T0 + SECOND, "lost"), attempt(2, T0 + SECOND, T0 + 2 * SECOND, cause="takeover")]
    picture = timeline(view(attempts), T0 + 2 * SECOND)
    assert [(band.label, band.tinted) for band in picture.bands] == [("epoch 1", True), ("epoch 2", False)]
    (mark,) = picture.takeovers
    assert mark.label == "takeover → epoch 2"
    assert mark.x == picture.attempts.bars[1].x == picture.bands[1].x
    assert "1 takeovers" in picture.said


def test_what_has_no_end_is_drawn_until_now_or_until_nothing_proves_it_any_more():
    running = timeline(view([attempt(1, T0, None, "running")]), T0 + 2 * SECOND)
    assert running.attempts.bars[0].state == "running"
    unknown = view([attempt(1, T0, None, "running")], shown="unknown", expires_us=T0 + SECOND)
    picture = timeline(unknown, T0 + 9 * HOUR)
    assert picture.attempts.bars[0].state == "unknown"
    assert picture.breaks == []
    assert "unknown, 1.0 s" in picture.attempts.bars[0].said


def test_of_many_operations_the_newest_are_drawn_and_the_others_counted():
    many = [operation(number, T0 + number * SECOND, T0 + (number + 1) * SECOND) for number in range(100)]
    picture = timeline(view([attempt(1, T0, T0 + 100 * SECOND)], many), T0 + 100 * SECOND)
    assert (len(picture.operations), picture.left_out) == (OPERATIONS_MAX, 100 - OPERATIONS_MAX)
    assert picture.operations[-1].name == "call 99"


@pytest.mark.parametrize(
    "shown",
    [
        view(),
        view(created_us=T0 + HOUR),
        view([attempt(1, T0, T0)], [operation(1, T0, T0)], [T0] * 3),
        view([attempt(1, T0 - HOUR, None, "running")], shown="unknown", expires_us=1),
        view([attempt(1, T0, T0 + 900_000 * HOUR)]),
    ],
)
def test_whatever_the_times_are_everything_is_inside_the_picture(shown):
    picture = timeline(shown, T0 + SECOND)
    for bar in bars(picture):
        assert 0 <= bar.x <= bar.x + bar.width <= WIDTH
    assert all(0 <= mark.x <= WIDTH for mark in (*picture.axis, *picture.breaks, *picture.takeovers))
    assert len(picture.axis) < 50


def ref(value):
    data = json.dumps(value).encode()
    return PayloadRef("json", len(data), inline=data)


def compared(before, after):
    sides = [{name: ref(value) for name, value in one.items()} for one in (before, after)]
    texts = {one: changes.said(json.loads(one.inline)) for one in changes.wanted(*sides)}
    return changes.compared(*sides, texts)


def test_only_channels_that_differ_are_compared_and_a_list_that_grew_shows_what_it_gained():
    long = [f"line {number}" for number in range(1_000)]
    grown, new, gone = compared(
        {"a": 1, "log": long, "z": "old"}, {"a": 1, "log": [*long, "the last"], "new": {"x": True}}
    )
    assert [(one.channel, one.kind) for one in (grown, new, gone)] == [
        ("log", "changed"), ("new", "added"), ("z", "removed"),
    ]  # fmt: skip
    assert [line.text.strip() for line in grown.lines if line.sign == "+"][-1] == '"the last"'
    assert len(grown.lines) < 10
    assert grown.lines[0].text == "… 998 equal lines"
    assert (new.before, gone.after) == (None, None)


def test_large_and_long_values_are_cut_and_say_so():
    (large,) = compared({}, {"big": "x" * 70_000})
    assert (large.lines, large.note) == ([], "too large to be loaded for a page")
    (rows,) = compared({"rows": list(range(3_000))}, {"rows": list(range(9_000, 12_000))})
    assert rows.note == "only the first lines are shown"
    assert len(rows.lines) <= 121
    assert changes.cut_line("x" * 1_000).endswith("(1,000 characters)")
    assert "more lines" in changes.shortened(list(range(1_000)))


def test_the_status_that_runs_are_filtered_by_is_the_one_people_are_told(runtime, raw):
    runtime.bind(chain({"node": says("x")}), name="hello").invoke({"log": []}, config("t"))
    (run,) = runtime.runs.list()
    (row,) = raw.rows("SELECT * FROM rp_runs")
    now = row["created_us"]
    seen = set()
    cases = itertools.product(
        RunStatus, Control, LeasePhase, (1, now + HOUR), (None, Observed.ACCEPTED, Observed.RUNNING)
    )
    for status, control, phase, expires, observed in cases:
        values = f"status = '{status}', control = '{control}', phase = '{phase}', expires_us = {expires}"
        said = "NULL" if observed is None else f"'{observed}'"
        raw.rows(f"UPDATE rp_runs SET {values}, observed_state = {said}")
        facts = {"status": status, "control": control, "phase": phase, "expires_us": expires}
        shown = shown_status({**facts, "observed_state": observed}, now + SECOND)
        found = flow(load_runs(runtime.engine, Wanted(shown=shown), None))
        assert [(one.run_id, one.shown) for one in found.runs] == [(run.run_id, shown)], facts
        other = "succeeded" if shown != "succeeded" else "failed"
        assert flow(load_runs(runtime.engine, Wanted(shown=other), None)).runs == []
        seen.add(shown)
    assert {"unknown", "cancelling", "starting", "waiting_runtime", "queued", "succeeded"} <= seen
