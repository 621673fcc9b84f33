"""One very big value: its put and get, and the most memory the process had. Run as a program of its own (row L1).

    python -m bench.big_value WHERE MEGABYTES

prints seconds and bytes as JSON.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from langgraph.checkpoint.base import empty_checkpoint

from bench.loads import KB, MB
from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter

_STATUS = Path("/proc/self/status")


def _peak() -> int:
    """Return the most bytes this program had in memory.

    Not ``ru_maxrss`` where there is /proc: on Linux that begins with what the process had that started this one.
    """
    if _STATUS.exists():
        found = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(found.split()[1]) * KB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes


def main(where: str, megabytes: int) -> None:
    with WorkflowCheckpointAdapter.from_conn_string(where) as saver:
        checkpoint = empty_checkpoint()
        config = {"configurable": {"thread_id": "big", "checkpoint_ns": ""}}
        version = saver.get_next_version(None, None)
        checkpoint["channel_versions"] = {"file": version}
        before = _peak()
        value = os.urandom(megabytes * MB)
        checkpoint["channel_values"] = {"file": value}
        began = time.perf_counter()
        saver.put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"file": version})
        put = time.perf_counter()
        put_peak = _peak()
        found = saver.get_tuple(config)
        got = time.perf_counter()
        assert found.checkpoint["channel_values"]["file"] == value
        answer = {"put_s": put - began, "get_s": got - put, "put_bytes": put_peak - before, "bytes": _peak() - before}
        print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
