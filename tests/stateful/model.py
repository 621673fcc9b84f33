"""What a run does, without a database: a few words of state, and what each command makes of them or refuses."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime_persist.errors import (
    IllegalTransition,
    LeaseExpired,
    LeaseLost,
    LeaseReleased,
    NothingToClaim,
    RunStopping,
    RuntimePersistError,
    ThreadBusy,
    ThreadMovedOn,
)
from runtime_persist.model.states import FINAL_RUN, OnBusy

Refusal = type[RuntimePersistError] | None
MAX_ATTEMPTS = 2
STARTED = ("starting", "running")
WAITING = ("claimed", "queued")


@dataclass
class Run:
    """One run. ``attempt``: the state of its last one; ``ended``: whichever way."""

    run_id: str
    status: str = "queued"
    stop: str | None = None
    rolls_back: bool = False
    epoch: int = 0
    phase: str = "released"
    expired: bool = False
    attempt: str = "none"
    attempts: int = 0
    failures: int = 0

    @property
    def final(self) -> bool:
        return self.status in FINAL_RUN

    @property
    def live(self) -> bool:
        return self.phase != "released" and not self.expired

    @property
    def idle(self) -> bool:
        not_started = self.status == "dispatching" and self.attempt not in STARTED
        return self.status in {"queued", "waiting_approval", "retry_wait"} or not_started

    # --- asked for by anybody -----------------------------------------------------------------------------

    def ask_to_stop(self, reason: str) -> None:
        self.stop = self.stop or reason
        if self.idle:
            self.end("cancelled")

    def cancel(self) -> Refusal:
        if not self.final and self.stop is None:
            self.ask_to_stop("cancel")
        return None

    def answer(self) -> Refusal:
        if self.status != "waiting_approval":
            return IllegalTransition
        self.status = "queued"
        return None

    def lose(self) -> Refusal:
        if self.final or self.status == "lost":
            return None
        if self.live or self.attempt not in STARTED:
            return IllegalTransition
        self.status, self.attempt = "lost", "ended"
        return None

    def claim(self, oldest: bool) -> Refusal:
        claimable = self.status == "retry_wait" or (
            self.status in {"queued", "dispatching", "running", "lost"} and not self.live
        )
        if not claimable or not oldest:
            return NothingToClaim
        takeover = self.attempt in STARTED or self.status == "lost"
        if self.attempt in STARTED:
            self.attempt = "ended"
        elif self.attempt in WAITING:
            self.attempt = "claimed"
        elif not takeover:
            self.attempt, self.attempts = "claimed", self.attempts + 1
        self.status = "lost" if takeover else "dispatching"
        self.epoch, self.phase, self.expired = self.epoch + 1, "recovering", False
        return None

    # --- by whoever holds the lease -----------------------------------------------------------------------

    def refused(self, epoch: int, phases: Sequence[str], *, open_only: bool = False) -> Refusal:
        if epoch != self.epoch:
            return LeaseLost
        if self.phase not in phases:
            return LeaseReleased if self.phase == "released" else LeaseLost
        if open_only and self.stop is not None:
            return RunStopping
        return LeaseExpired if self.expired else None

    def activate(self, epoch: int) -> Refusal:
        if refusal := self.refused(epoch, ("recovering", "active")):
            return refusal
        if self.phase != "recovering":
            return IllegalTransition
        self.phase = "active"
        if self.status == "lost" and self.attempt in {"none", "ended"}:
            self.attempt, self.attempts = "claimed", self.attempts + 1
        return None

    def start(self, epoch: int) -> Refusal:
        if refusal := self.refused(epoch, ("active",), open_only=True):
            return refusal
        if self.attempt != "claimed":
            return IllegalTransition
        self.attempt = "starting"
        return None

    def report(self, epoch: int) -> Refusal:
        if refusal := self.refused(epoch, ("active",)):
            return refusal
        self.attempt, self.status = "running", "running"
        return None

    def succeed(self, epoch: int) -> Refusal:
        if refusal := self.refused(epoch, ("recovering", "active")):
            return refusal
        status = "succeeded" if self.stop is None else "cancelled"
        if status == "succeeded" and self.status == "dispatching":
            return IllegalTransition
        self.end(status)
        return None

    def fail(self, epoch: int) -> Refusal:
        if refusal := self.refused(epoch, ("active",)):
            return refusal
        if self.attempt not in STARTED:
            return IllegalTransition
        self.failures += 1
        if self.stop is None and self.failures < MAX_ATTEMPTS:
            self.status, self.attempt, self.phase = "retry_wait", "ended", "released"
        else:
            self.end("failed" if self.stop is None else "cancelled")
        return None

    def leave(self, epoch: int, *, waits: bool) -> Refusal:
        if refusal := self.refused(epoch, ("active",), open_only=True):
            return refusal
        if self.attempt not in STARTED or (waits and self.status != "running"):
            return IllegalTransition
        self.status = "waiting_approval" if waits else "queued"
        self.attempt, self.phase = "ended", "released"
        return None

    def give_back(self, epoch: int) -> Refusal:
        if refusal := self.refused(epoch, ("recovering", "active")):
            return refusal
        if self.attempt in STARTED:
            return IllegalTransition
        if self.stop is not None and not self.rolls_back:
            self.end("cancelled")
            return None
        if self.attempt == "claimed":
            self.attempt = "queued"
        if self.status == "dispatching":
            self.status = "queued"
        self.phase = "released"
        return None

    def end(self, status: str) -> None:
        self.status, self.phase = status, "released"
        self.attempt = "ended" if self.attempt != "none" else "none"


class Thread:
    """The runs of a thread, in their order."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    @property
    def open(self) -> list[Run]:
        return [run for run in self.runs if not run.final]

    def start(self, run_id: str, on_busy: OnBusy) -> Refusal:
        if on_busy is OnBusy.REJECT and self.open:
            return ThreadBusy
        if on_busy in {OnBusy.INTERRUPT, OnBusy.ROLLBACK}:
            for run in self.open:
                run.rolls_back = run.rolls_back or on_busy is OnBusy.ROLLBACK
                run.ask_to_stop("superseded")
        self.runs.append(Run(run_id))
        return None

    def retry(self, run: Run, run_id: str) -> Refusal:
        if run.status not in {"failed", "cancelled", "timed_out"}:
            return IllegalTransition
        if any(later.attempts or not later.final for later in self.runs[self.runs.index(run) + 1 :]):
            return ThreadMovedOn
        self.runs.append(Run(run_id))
        return None
