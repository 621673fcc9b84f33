"""One row a thread: generation, owner run and delete mark. Its key is a keyed hash, so that the id can be forgotten."""

from __future__ import annotations

from sqlalchemy import Index, Table

from runtime_persist.schema.metadata import data, key, metadata, number

threads = Table(
    "rp_threads",
    metadata,
    key("space", primary=True),
    data("thread_hash", primary=True),
    key("thread_id", null=True),  # NULL once the thread is deleted
    number("generation"),
    key("owner_run_id", null=True),  # the run that holds, or last held, the thread
    number("run_no"),  # runs started on this thread: FIFO order inside the execution scope
    number("deleted_us", null=True),
    key("deleted_checkpoint_id", null=True),  # greatest checkpoint id that was deleted
    number("created_us"),
)
Index("ix_rp_threads_thread_id", threads.c.space, threads.c.thread_id)  # from a run to its thread: what a claim locks
