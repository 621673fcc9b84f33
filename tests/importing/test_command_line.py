"""runtime-persist import: killed in the middle and run again, and what it prints."""

import json
import signal
import subprocess
import sys

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter
from tests.fixtures.raw import wait_until
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import asks, chain, config, says

CLI = [sys.executable, "-m", "runtime_persist.cli", "import"]


def filled(stock, threads, steps):
    """Threads of some hundred checkpoints, with writes."""
    found = []
    with stock.opens() as saver:
        for thread in range(threads):
            place = at(f"thread {thread:02}")
            for step in range(steps):
                made = new_checkpoint({"a": f"{step} " * 500})
                place = saver.put(place, made, {"step": step}, made["channel_versions"])
                saver.put_writes(place, [("a", step), ("b", None)], "task", "path")
        found = list(saver.list(None))
    return sorted(found, key=lambda one: str(one.config))


def call(stock, url, *more, **options):
    return subprocess.run(
        [*CLI, "--from", stock.url, "--url", url, *more], capture_output=True, text=True, check=False, **options
    )


def listed(url):
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        return sorted(saver.list(None), key=lambda one: str(one.config))


def test_an_import_that_is_killed_again_and_again_is_completed_by_running_it_again(stock, shared_url, opened, raw_of):
    theirs = filled(stock, threads=3, steps=60)
    raw = raw_of(opened(WorkflowCheckpointAdapter.from_conn_string(shared_url)))

    def count():
        return raw.value("SELECT count(*) FROM rp_checkpoints")

    before = 0
    for _ in range(2):
        process = subprocess.Popen([*CLI, "--from", stock.url, "--url", shared_url], stderr=subprocess.DEVNULL)
        wait_until(lambda seen=before: count() > seen, "a page")
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        before = count()
    assert before < len(theirs)
    done = call(stock, shared_url, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (len(told["threads"]), told["checkpoints"] + told["present"]) == (3, len(theirs))
    assert told["present"] >= before
    assert listed(shared_url) == theirs


def test_it_says_what_it_did(stock, shared_url):
    filled(stock, threads=2, steps=3)
    done = call(stock, shared_url, "--thread", "thread 01")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("1 threads are here and equal to their source: 3 checkpoints stored, 0 were here already\n")
    assert "thread 01" in done.stderr
    assert "3/3" in done.stderr


def test_what_could_not_be_imported_is_named_and_the_exit_code_says_so(stock, shared_url):
    graph = {"ask": asks("?"), "after": says(1)}
    with stock.opens() as saver:
        chain(graph, checkpointer=saver).invoke({"log": []}, config("both"))
    assert call(stock, shared_url).returncode == 0
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        saver.delete_thread("both")
    done = call(stock, shared_url)
    assert done.returncode == 3
    assert "'both'" in done.stderr
    assert "THREAD_DELETED" in done.stderr


def test_classes_of_a_named_module_can_be_read(stock, shared_url, tmp_path):
    (tmp_path / "my_app.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Order:\n    cents: int\n"
    )
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
from my_app import Order
from tests.fixtures.raw import wait_until
from tests.support.checkpoints import at, new_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.postgres import PostgresSaver
url = {stock.url!r}
opens = PostgresSaver.from_conn_string(url) if url.startswith("postgres") else \\
    SqliteSaver.from_conn_string(url.removeprefix("sqlite:///"))
with opens as saver:
    made = new_checkpoint({{"order": Order(5)}})
    saver.put(at(), made, {{}}, made["channel_versions"])
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    refused = call(stock, shared_url, cwd=tmp_path)
    assert refused.returncode == 6
    assert "my_app.Order" in refused.stderr
    done = call(stock, shared_url, "--load", "my_app", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_it_is_listed_with_the_other_commands():
    shown = subprocess.run(
        [sys.executable, "-m", "runtime_persist.cli", "-h"], capture_output=True, text=True, check=True
    )
    assert "import" in shown.stdout
