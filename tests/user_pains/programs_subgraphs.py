"""What other processes do in the tests about forks, delta channels and subgraphs."""

from typing import Any

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from tests.support.deltas import delta_chain
from tests.support.graphs import config
from tests.support.processes import Word


def reads_both(_: Word, url: str, schema: Any) -> list[tuple[Any, Any]]:
    """Return both channels of every state of the thread, newest first, as a process sees them that stored nothing."""
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        graph = delta_chain(schema, checkpointer=saver)
        states = [graph.get_state(config()), *graph.get_state_history(config())]
        return [(state.values.get("delta", []), state.values.get("plain", [])) for state in states]
