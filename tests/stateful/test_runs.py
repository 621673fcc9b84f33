"""Any sequence of commands: the database does what a pure model does, tells it in events, and keeps what has ended."""

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from runtime_persist.commands.activate_lease import ActivateLease
from runtime_persist.commands.answer_question import AnswerQuestion
from runtime_persist.commands.finalize_run import FinalizeRun
from runtime_persist.commands.mark_lost import MarkLost
from runtime_persist.commands.release_claim import ReleaseClaim
from runtime_persist.commands.report_attempt_event import ReportAttemptEvent
from runtime_persist.commands.request_start import RequestStart
from runtime_persist.commands.request_stop import RequestStop
from runtime_persist.commands.retry_run import RetryRun
from runtime_persist.commands.start_run import StartRun
from runtime_persist.commands.yield_attempt import YieldAttempt
from runtime_persist.model.ids import new_id
from runtime_persist.model.retry import RetryPolicy
from runtime_persist.model.states import (
    ATTEMPT_TRANSITIONS,
    FINAL_ATTEMPT,
    RUN_TRANSITIONS,
    AttemptStatus,
    OnBusy,
    RunStatus,
)
from tests.fixtures.contracts import changed
from tests.fixtures.world import Held
from tests.stateful.model import MAX_ATTEMPTS, Run, Thread

ANY = st.integers(0, 7)
POLICY = RetryPolicy(max_attempts=MAX_ATTEMPTS, backoff=0).encoded()
HOUR_US, NEVER_US = 3_600_000_000, 2**62  # leases and reports end when a step ends them, never because time passes
STEPS = {"start_requested": "starting", "released": "queued"}


class Runs(RuleBasedStateMachine):
    """Commands on the runs of one thread; leases that were lost go on being used by those who had them."""

    def __init__(self, world) -> None:
        super().__init__()
        self.world = world
        world.instance()
        world.raw.rows("UPDATE rp_instances SET expires_us = ?", NEVER_US)
        self.thread_id = new_id()
        self.thread = Thread()
        self.leases = []  # (run, epoch), every one that ever was
        self.ended = {}
        self.versions = {}

    # --- sending ----------------------------------------------------------------------------------------------

    def rows(self):
        found = self.world.raw.rows(
            "SELECT r.*, a.status AS attempt FROM rp_runs r LEFT JOIN rp_attempts a ON a.attempt_id = r.attempt_id "
            "WHERE r.thread_id = ? ORDER BY r.thread_run_no",
            self.thread_id,
        )
        return {row["run_id"]: row for row in found}

    def send(self, command, refusal):
        """The database refuses what the model refuses, with the same error, and writes nothing; else it answers."""
        if refusal is None:
            return self.world.commit(command).result
        before = self.rows()
        with pytest.raises(refusal) as caught:
            self.world.commit(command)
        assert type(caught.value) is refusal
        assert self.rows() == before
        return {}

    def run_at(self, n):
        return self.thread.runs[n % len(self.thread.runs)] if self.thread.runs else None

    def base(self):
        return self.world.of_thread(self.thread_id)

    def request(self):
        return self.world.request(retry_policy=POLICY)

    def under_a_lease(self, n, command, step, **fields):
        """Whoever has, or had, a lease sends a command; ``step`` is what the model makes of it."""
        if not self.leases:
            return
        run, epoch = self.leases[n % len(self.leases)]
        held = Held(run.run_id, epoch, "", self.thread_id)
        base = self.world.of_lease(held) if "thread_id" not in command.__dataclass_fields__ else self.base()
        self.send(command(**(base | {"run_id": run.run_id, "epoch": epoch} | fields)), step(run, epoch))

    # --- what anybody asks for ----------------------------------------------------------------------------------

    @rule(on_busy=st.sampled_from(OnBusy))
    def start(self, on_busy):
        asked = self.request()
        self.send(StartRun(request=asked, on_busy=on_busy, **self.base()), self.thread.start(asked.run_id, on_busy))

    @rule(n=ANY)
    def retry(self, n):
        if run := self.run_at(n):
            asked = self.request()
            command = RetryRun(run_id=run.run_id, request=asked, **self.base())
            self.send(command, self.thread.retry(run, asked.run_id))

    @rule(n=ANY)
    def cancel(self, n):
        if run := self.run_at(n):
            self.send(RequestStop(run_id=run.run_id, **self.world.base()), run.cancel())

    @rule(n=ANY)
    def answer(self, n):
        if run := self.run_at(n):
            command = AnswerQuestion(run_id=run.run_id, answer=b"because", said=b"because", **self.world.base())
            self.send(command, run.answer())

    @rule(n=ANY)
    def state_as_lost(self, n):
        if run := self.run_at(n):
            self.send(MarkLost(run_id=run.run_id, **self.world.base()), run.lose())

    @rule(n=ANY)
    def let_the_lease_run_out(self, n):
        if (run := self.run_at(n)) and run.live:
            run.expired = True
            self.world.set_run(run.run_id, expires_us=1)

    @rule(n=ANY)
    def claim(self, n):
        if run := self.run_at(n):
            oldest = self.thread.open[:1] == [run]
            command = changed(self.world.claim_run(run.run_id, self.thread_id), ttl_us=HOUR_US)
            if self.send(command, run.claim(oldest)):
                self.leases.append((run, run.epoch))

    # --- what a holder does, or one who was it --------------------------------------------------------------------

    @rule(n=ANY)
    def activate(self, n):
        self.under_a_lease(n, ActivateLease, Run.activate, attempt_id=new_id())

    @rule(n=ANY)
    def request_start(self, n):
        self.under_a_lease(n, RequestStart, Run.start, attempt_id=self.attempt_of(n))

    @rule(n=ANY)
    def report_running(self, n):
        if self.leases and self.leases[n % len(self.leases)][0].attempt == "starting":
            self.under_a_lease(n, ReportAttemptEvent, Run.report, attempt_id=self.attempt_of(n))

    @rule(n=ANY)
    def succeed(self, n):
        made = FinalizeRun.succeeded(result=b"r", owner="space", blobs=(), run_id="", epoch=0, **self.base())
        fields = {name: getattr(made, name) for name in ("status", "reason", "result")}
        self.under_a_lease(n, FinalizeRun, Run.succeed, **fields)

    @rule(n=ANY)
    def fail(self, n):
        fields = {"error_code": "ValueError", "error_summary": "no luck"}
        self.under_a_lease(n, type(self.world.fail_attempt(Held("", 0, ""))), Run.fail, **fields)

    @rule(n=ANY, waits=st.booleans())
    def leave(self, n, waits):
        fields = {"reason": "interrupt" if waits else "drain", "question": b"why?" if waits else None}
        self.under_a_lease(n, YieldAttempt, lambda run, epoch: run.leave(epoch, waits=waits), **fields)

    @rule(n=ANY)
    def give_back(self, n):
        self.under_a_lease(n, ReleaseClaim, Run.give_back)

    @rule(then=st.sampled_from(["", "", "fail", "succeed", "leave", "run out", "taken over"]))
    def run_on(self, then):
        """The usual way of the oldest open run, and what happens then: random steps alone rarely come far."""
        if not self.thread.open:
            return
        at = self.thread.runs.index(self.thread.open[0])
        self.claim(at)
        if not self.leases:
            return
        last = len(self.leases) - 1
        self.activate(last)
        self.request_start(last)
        self.report_running(last)
        if then in {"run out", "taken over"}:
            self.let_the_lease_run_out(at)
            if then == "taken over":
                self.claim(at)
        elif then:
            getattr(self, then)(last, *([True] if then == "leave" else []))

    def attempt_of(self, n):
        if not self.leases:
            return ""
        return self.rows()[self.leases[n % len(self.leases)][0].run_id]["attempt_id"] or ""

    # --- what holds at every moment -------------------------------------------------------------------------------

    @invariant()
    def the_rows_are_the_model(self):
        rows = self.rows()
        assert list(rows) == [run.run_id for run in self.thread.runs]
        for run in self.thread.runs:
            row = rows[run.run_id]
            assert (row["status"], row["epoch"], row["phase"]) == (run.status, run.epoch, run.phase)
            assert (row["control"], row["stop_reason"]) == ("open" if run.stop is None else "stopping", run.stop)
            assert (row["attempt_no"], row["failures"]) == (run.attempts, run.failures)
            attempt = {None: "none", **dict.fromkeys(FINAL_ATTEMPT, "ended")}.get(row["attempt"], row["attempt"])
            assert attempt == run.attempt

    @invariant()
    def what_has_ended_never_changes(self):
        for run_id, row in self.rows().items():
            if row["finished_us"] is not None:
                assert self.ended.setdefault(run_id, row) == row

    @invariant()
    def a_run_changes_with_its_version_and_never_without_an_event(self):
        for run_id, row in self.rows().items():
            version, seen, events = self.versions.get(run_id, (0, None, 0))
            now = {name: value for name, value in row.items() if name not in {"expires_us", "attempt"}}
            if now != seen:
                assert row["version"] > version
                assert row["event_seq"] > events
            self.versions[run_id] = row["version"], now, row["event_seq"]

    @invariant()
    def events_are_numbered_and_tell_only_legal_transitions(self):
        for run in self.thread.runs:
            self.world.events(run.run_id)  # 1, 2, 3 … and the run has counted them
            rows = self.world.raw.rows("SELECT * FROM rp_events WHERE run_id = ? ORDER BY seq", run.run_id)
            told = [row["type"].removeprefix("run.") for row in rows if row["type"].startswith("run.")]
            path = [name for name in told if name in set(RunStatus)]
            assert all(RunStatus(new) in RUN_TRANSITIONS[RunStatus(old)] for old, new in pairwise(path)), path
            assert path[-1] == run.status
            attempts = defaultdict(lambda: ["queued"])
            for row in rows:
                kind, _, name = row["type"].partition(".")
                if kind == "attempt":
                    attempts[row["attempt_id"]].append(STEPS.get(name, name))
            for path in attempts.values():
                legal = (AttemptStatus(new) in ATTEMPT_TRANSITIONS[AttemptStatus(old)] for old, new in pairwise(path))
                assert all(legal), path


def check(world, examples):
    budget = settings(max_examples=examples, stateful_step_count=30)
    run_state_machine_as_test(lambda: Runs(world), settings=budget)


@pytest.mark.parametrize("engine_url", ["sqlite-memory"], indirect=True)
def test_commands_do_what_the_model_does_on_sqlite(world):
    check(world, 60)


def test_commands_do_what_the_model_does_on_postgresql(postgres_world):
    check(postgres_world, 8)


@pytest.mark.exhaustive
def test_commands_do_what_the_model_does_at_length(world):
    check(world, 300)
