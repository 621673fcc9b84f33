"""What real processes run that open execution domains."""

import os
import subprocess
import sys
from typing import Any

from runtime_persist import Runtime, workspace
from runtime_persist.engine import domains, processes
from runtime_persist.engine import run as flow
from runtime_persist.journal.place import current_run
from runtime_persist.model.domains import PROCESS
from runtime_persist.model.ids import new_id
from runtime_persist.worker import Worker
from tests.support.graphs import chain
from tests.support.processes import Word

_CHILD = [sys.executable, "-S", "-c", "import signal; signal.pause()"]


def work(word: Word, url: str, node: Any, lease_ttl: float = 30.0) -> None:
    """Work on graph ``g``, whose first node is ``node``."""
    graphs = {"g": chain({"node": node, "after": lambda _: {"log": ["after"]}})}
    with Runtime.open(url, lease_ttl=lease_ttl) as runtime:
        word.say("ready")
        Worker(runtime, graphs, poll_seconds=0.02).run()


def with_a_process(word: Word, url: str, changed: dict[str, Any] | None = None) -> None:
    """Its node has a process work for it, opens its domain and says its pid; ``changed``: of the process's identity."""

    def node(_: Any) -> Any:
        owned, domain_id = current_run("the test"), new_id()
        assert owned is not None
        child = subprocess.Popen(_CHILD, start_new_session=True, env=processes.marked(domain_id))
        handle = {**processes.identify(child.pid).handle(), **(changed or {})}
        flow(domains.open_domain(owned, PROCESS, handle, domain_id=domain_id))
        word.say("in node", child.pid, domain_id)
        word.wait()
        return {"log": ["first"]}

    work(word, url, node)


def with_a_workspace(word: Word, url: str, path: str, lease_ttl: float = 30.0) -> None:
    """Its node works in a directory with a program that it started there, and says its pid; says how it went on."""

    def node(_: Any) -> Any:
        with workspace(path) as place:
            program = subprocess.Popen(_CHILD, env=place.environ, cwd=place.path)
            word.say("in node", program.pid, os.getpid())
            word.wait()
        program.kill()
        program.wait()
        word.say("closed")
        word.wait()  # it keeps its slot: it shall not claim the run itself
        return {"log": ["first"]}

    work(word, url, node, lease_ttl)


def unregistered(word: Word, url: str) -> None:
    """Its node opens a domain of a kind that nobody has a revoker of."""

    def node(_: Any) -> Any:
        owned = current_run("the test")
        assert owned is not None
        word.say("in node", flow(domains.open_domain(owned, "sandbox", {"name": "box-7"})))
        word.wait()
        return {"log": ["first"]}

    work(word, url, node)


# --- in the test's own process --------------------------------------------------------------------------------------


def handle_of(pid: int) -> dict[str, Any]:
    """What a process's domain says of it."""
    return processes.identify(pid).handle()
