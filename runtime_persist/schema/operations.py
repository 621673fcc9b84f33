"""The operation journal: one row a logical call of the outside world."""

from __future__ import annotations

from sqlalchemy import Index, Table

from runtime_persist.model.states import OperationPhase, OperationStatus
from runtime_persist.schema.metadata import data, key, metadata, number, one_of, words

operations = Table(
    "rp_operations",
    metadata,
    key("space", primary=True),
    key("thread_id", primary=True),
    key("checkpoint_ns", primary=True),  # includes the task id
    key("name", primary=True),
    key("ordinal", primary=True),  # "#3", or the caller's key
    key("operation_id"),
    key("status"),
    key("on_unknown"),
    data("request_fingerprint"),
    words("request"),  # short text of the arguments, for people
    key("idempotency_key"),
    key("run_id"),  # who began it; never part of the identity: a thread outlives runs
    number("epoch"),
    number("node_attempt"),
    number("try_no"),
    data("result", null=True),  # payload reference
    data("result_fingerprint", null=True),
    key("error_type", null=True),
    words("error_text", null=True),
    key("copied_from", null=True),  # the operation of another thread that copy_thread copied
    number("created_us"),
    number("ended_us", null=True),
    key("phase", default=OperationPhase.EXECUTING.value),  # of a pending one; 1.0 has no other
    data("raw", null=True),  # payload reference of what the outside said, before it is accepted
    data("raw_fingerprint", null=True),
    number("next_attempt_us", null=True),  # when the try behind a failed one is due
    key("error_code", null=True),
    number("hooked", default=0),  # 1: response hooks are asked about its answer, also about what a person says it was
    one_of("status", OperationStatus),
)
Index("uq_rp_operations_operation_id", operations.c.space, operations.c.operation_id, unique=True)
Index("ix_rp_operations_run", operations.c.space, operations.c.run_id, operations.c.operation_id)  # a page at a time
