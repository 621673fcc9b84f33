"""Attempts: one dispatch of a run to a worker each; never reused after it may have started."""

from __future__ import annotations

from sqlalchemy import Index, Table

from runtime_persist.model.states import AttemptCause, AttemptStatus
from runtime_persist.schema.metadata import data, key, metadata, number, one_of, words

attempts = Table(
    "rp_attempts",
    metadata,
    key("space", primary=True),
    key("attempt_id", primary=True),
    key("run_id"),
    number("attempt_no"),
    key("status"),
    key("cause"),
    key("previous_attempt_id", null=True),
    number("epoch", null=True),
    key("worker_id", null=True),
    number("claimed_us", null=True),
    number("start_requested_us", null=True),  # the start fence
    key("observed_state"),
    number("observed_us", null=True),
    key("termination_reason", null=True),
    key("error_code", null=True),
    words("error_summary", null=True),
    number("created_us"),
    number("ended_us", null=True),
    key("instance_id", null=True),  # whose slot it holds
    key("runtime", null=True),  # inprocess, subprocess … (None: before its start fence, or an owned call)
    words("handle", null=True),  # JSON: how the runtime finds it again
    key("sync_state", default="pending"),
    number("last_event_seq", default=0),  # of its runtime: only a greater one counts
    number("heartbeat_us", null=True),
    data("callback_hash", null=True),  # of the token that reports events without the lease
    number("callback_expires_us", null=True),
    one_of("status", AttemptStatus),
    one_of("cause", AttemptCause),
)
Index("uq_rp_attempts_attempt_no", attempts.c.space, attempts.c.run_id, attempts.c.attempt_no, unique=True)
