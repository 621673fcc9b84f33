"""Workers and graphs in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from runtime_persist.inspector.render import moment, status, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from runtime_persist.inspector.fleet import GraphView
    from runtime_persist.inspector.workers import WorkerView


def workers_table(workers: Sequence[WorkerView]) -> Table:
    """Return the workers as a table."""
    made = table("workers", "worker", "state", "slots", "graphs", "reported")
    for worker in workers:
        graphs = ", ".join(f"{name} ({', '.join(versions)})" for name, versions in sorted(worker.graphs.items()))
        slots = Text(f"{worker.occupied}/{worker.slots}", style="yellow" if worker.occupied >= worker.slots else "")
        made.add_row(worker.worker_id, status(worker.state), slots, graphs, moment(worker.reported_us))
    return made


def graphs_table(graphs: Sequence[GraphView]) -> Table:
    """Return the graphs as a table."""
    made = table("graphs", "graph", "version", "limit", "active", "waiting", "asking", "workers", "workspace")
    for graph in graphs:
        short = graph.waiting > 0 and graph.workers == 0
        workspace = graph.workspace or {}
        made.add_row(
            graph.graph,
            graph.version or "any",
            str(graph.max_concurrency or "–"),
            str(graph.active),
            str(graph.waiting),
            str(graph.asking),
            Text(str(graph.workers), style="red" if short else ""),
            f"{workspace.get('path', '')} {workspace.get('isolation', '')}".strip(),
        )
    return made
