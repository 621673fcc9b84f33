"""Names of graphs that some process of this space can run."""

from __future__ import annotations

from sqlalchemy import Table

from runtime_persist.schema.metadata import key, metadata, number, words

graphs = Table(
    "rp_graphs",
    metadata,
    key("space", primary=True),
    key("graph", primary=True),
    key("version", null=True),  # of the definition that was registered last
    words("retry_policy", null=True),  # JSON: for runs that are started without one
    number("registered_us"),
    number("max_concurrency", null=True),  # of its runs, over all workers (None: no limit)
    words("workspace", null=True),  # JSON: what its attempts share, and how they are kept apart
    number("served_no", default=0),  # of its last claim: round-robin between graphs
)
