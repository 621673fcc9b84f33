"""The metrics as data: name, instrument, unit, meaning, labels. Labels are bounded: never an id, never a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JOBS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class Metric:
    """One instrument.

    Attributes:
        name: as an exporter shows it.
        kind: of instrument.
        unit: in UCUM.
        meaning: for people.
        labels: their names; each has few values (names of commands, states, graphs, codes of errors).
        bounds: of a histogram's buckets.

    """

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


RUN_TRANSITION: Final = Metric(
    "run_transition_total", "counter", "{transition}",
    "state changes of runs: `committed`, or `refused` because the state has no such way out",
    ("from", "to", "result"),
)  # fmt: skip
RUN_TRANSITION_CONFLICT: Final = Metric(
    "run_transition_conflict_total", "counter", "{conflict}",
    "commands refused because somebody else had changed the row first, or the state does not allow them", ("command",),
)  # fmt: skip
RUN_EVENT_APPEND: Final = Metric(
    "run_event_append_total", "counter", "{event}", "events appended to runs", ("type",)
)  # fmt: skip
RUN_RECONCILE: Final = Metric(
    "run_reconcile_total", "counter", "{decision}",
    "what was found of attempts that nobody held any more: `lost` (nothing proves what became of it), `released` (it "
    "was certainly not started), `observed` (its runtime told after all), `blocked` (what it opened outside is not "
    "proved revoked), `taken_over`",
    ("result",),
)  # fmt: skip
RUN_NON_TERMINAL_AGE: Final = Metric(
    "run_non_terminal_age_seconds", "gauge", "s", "age of the oldest run in this state (0: there is none)", ("status",)
)  # fmt: skip
RUN_QUEUE_DEPTH: Final = Metric(
    "run_queue_depth", "gauge", "{run}", "runs that wait for a worker, or for their retry", ("graph",)
)  # fmt: skip
ATTEMPT_LATE_CALLBACK: Final = Metric(
    "attempt_late_callback_total", "counter", "{report}",
    "reports of runtimes that changed nothing: too late (`run_ended`, `taken_over`, `attempt_ended`), `duplicate`, "
    "`reordered`, `missing_sequence`",
    ("type",),
)  # fmt: skip
COMMAND_DURATION: Final = Metric(
    "command_duration_seconds", "histogram", "s",
    "from handing a command over to its acknowledgement: `committed`, `replayed`, or the code it was refused with",
    ("command", "result"), SECONDS,
)  # fmt: skip
COMMAND_RETRY: Final = Metric(
    "command_retry_total", "counter", "{retry}", "commands sent again: busy, deadlock, lost connection",
    ("command", "code"),
)  # fmt: skip
COMMIT_BATCH: Final = Metric(
    "commit_batch_size", "histogram", "{command}", "commands committed together in one transaction",
    ("database",), _JOBS,
)  # fmt: skip
LEASE_LOST: Final = Metric(
    "lease_lost_total", "counter", "{lease}", "leases that this process lost while it worked under them", ("code",)
)  # fmt: skip

METRICS: Final = (
    RUN_TRANSITION,
    RUN_TRANSITION_CONFLICT,
    RUN_EVENT_APPEND,
    RUN_RECONCILE,
    RUN_NON_TERMINAL_AGE,
    RUN_QUEUE_DEPTH,
    ATTEMPT_LATE_CALLBACK,
    COMMAND_DURATION,
    COMMAND_RETRY,
    COMMIT_BATCH,
    LEASE_LOST,
)

RECONCILED: Final = {
    "attempt.lost": "lost",
    "attempt.released": "released",
    "run.reconciled": "observed",
    "run.takeover_blocked": "blocked",
}
"""Events that are the outcome of looking at an attempt that nobody held: type -> result."""
