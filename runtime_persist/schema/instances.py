"""Instances: what a worker process reports of its capacity, valid for a while."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import data, key, metadata, number, words

instances = Table(
    "rp_instances",
    metadata,
    key("space", primary=True),
    key("instance_id", primary=True),
    key("worker_id"),
    number("report_no"),  # of its last report: an older one that arrives late changes nothing
    data("fingerprint"),  # of that report
    words("host"),
    words("graphs"),  # JSON: name -> versions
    number("slots"),
    words("active_task_ids"),  # JSON: what it executes, each named run_id:epoch, or by whoever started it
    number("queued"),
    number("draining"),
    number("reported_us"),
    number("expires_us"),
)
