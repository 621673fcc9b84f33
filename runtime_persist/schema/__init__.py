"""The tables, one a file. Every primary key begins with the space; every name with ``rp_`` (users share databases)."""

from __future__ import annotations

from runtime_persist.schema.attempts import attempts
from runtime_persist.schema.blobs import blobs
from runtime_persist.schema.checkpoints import checkpoints
from runtime_persist.schema.cursors import cursors
from runtime_persist.schema.domains import domains
from runtime_persist.schema.events import events
from runtime_persist.schema.graphs import graphs
from runtime_persist.schema.heads import heads
from runtime_persist.schema.instances import instances
from runtime_persist.schema.metadata import metadata
from runtime_persist.schema.operation_tries import operation_tries
from runtime_persist.schema.operations import operations
from runtime_persist.schema.receipts import receipts
from runtime_persist.schema.runs import runs
from runtime_persist.schema.spaces import spaces
from runtime_persist.schema.threads import threads
from runtime_persist.schema.tickets import tickets
from runtime_persist.schema.writes import writes

__all__ = [
    "attempts",
    "blobs",
    "checkpoints",
    "cursors",
    "domains",
    "events",
    "graphs",
    "heads",
    "instances",
    "metadata",
    "operation_tries",
    "operations",
    "receipts",
    "runs",
    "spaces",
    "threads",
    "tickets",
    "writes",
]
