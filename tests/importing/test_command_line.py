"""runtime-persist import: killed in the middle and run again, and what it prints."""

import json
import signal
import subprocess
import sys
from functools import partial

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from runtime_persist.adapters.workflow import WorkflowCheckpointAdapter, importing
from runtime_persist.cli import importing as cli
from tests.importing.conftest import Stock
from tests.support import command_line
from tests.support.checkpoints import at, new_checkpoint
from tests.support.graphs import asks, chain, config, says


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


def page_by_page(word, *arguments):
    """Run a command that says each page it has stored, and waits."""

    def import_threads(*given, progress, **options):
        def tell(step):
            progress(step)
            word.say("page")
            word.wait()

        return importing.import_threads(*given, progress=tell, **options)

    cli.import_threads = import_threads
    return command_line.command(word, *arguments)


@pytest.fixture
def call(fork, stock, shared_url):
    """Runs an import to its end, in a process of its own."""
    return partial(command_line.says, fork, "import", "--from", stock.url, "--url", shared_url)


def listed(url):
    with WorkflowCheckpointAdapter.from_conn_string(url) as saver:
        return sorted(saver.list(None), key=lambda one: str(one.config))


def test_an_import_that_is_killed_again_and_again_is_completed_by_running_it_again(
    stock, shared_url, opened, raw_of, fork, call
):
    theirs = filled(stock, threads=3, steps=60)
    raw = raw_of(opened(WorkflowCheckpointAdapter.from_conn_string(shared_url)))

    def count():
        return raw.value("SELECT count(*) FROM rp_checkpoints")

    before = 0
    for pages in (1, 3):  # those that are here already count
        process = fork(page_by_page, "import", "--from", stock.url, "--url", shared_url)
        process.until("page")
        for _ in range(1, pages):
            process.give_the_word()
            process.until("page")
        process.kill()
        assert process.ended() == -signal.SIGKILL
        assert count() > before
        before = count()
    assert before < len(theirs)
    done = call("--json")
    assert done.exit_code == 0, done.errors
    told = json.loads(done.output)
    assert (len(told["threads"]), told["checkpoints"] + told["present"]) == (3, len(theirs))
    assert told["present"] >= before
    assert listed(shared_url) == theirs


STORED = "1 threads are here and equal to their source: 3 checkpoints stored, 0 were here already\n"


def test_it_says_what_it_did(stock, call):
    filled(stock, threads=2, steps=3)
    done = call("--thread", "thread 01")
    assert done.exit_code == 0, done.errors
    assert done.output == STORED
    assert "thread 01" in done.errors
    assert "3/3" in done.errors


def test_what_could_not_be_imported_is_named_and_the_exit_code_says_so(stock, shared_url, call):
    graph = {"ask": asks("?"), "after": says(1)}
    with stock.opens() as saver:
        chain(graph, checkpointer=saver).invoke({"log": []}, config("both"))
    assert call().exit_code == 0
    with WorkflowCheckpointAdapter.from_conn_string(shared_url) as saver:
        saver.delete_thread("both")
    done = call()
    assert done.exit_code == 3
    assert "'both'" in done.errors
    assert "THREAD_DELETED" in done.errors


def put_an_order(_word, folder, url):
    """Store an object of a class that only this process knows."""
    sys.path.insert(0, str(folder))
    from my_app import Order

    opens = PostgresSaver if url.startswith("postgres") else SqliteSaver
    with opens.from_conn_string(url.removeprefix("sqlite:///")) as saver:
        made = new_checkpoint({"order": Order(5)})
        saver.put(at(), made, {}, made["channel_versions"])


def test_classes_of_a_named_module_can_be_read(stock, fork, call, tmp_path):
    (tmp_path / "my_app.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Order:\n    cents: int\n"
    )
    fork(put_an_order, tmp_path, stock.url).result()
    refused = call(folder=tmp_path)
    assert refused.exit_code == 6
    assert "my_app.Order" in refused.errors
    done = call("--load", "my_app", folder=tmp_path)
    assert done.exit_code == 0, done.errors


def test_it_is_a_command_of_the_program_that_is_installed(tmp_path):
    """What the others do in forked processes, from the start of the interpreter to its exit code."""
    path = tmp_path / "stock.db"
    stock = Stock(f"sqlite:///{path}", lambda: SqliteSaver.from_conn_string(str(path)))
    filled(stock, threads=2, steps=3)
    program = [sys.executable, "-m", "runtime_persist.cli", "import"]
    addresses = ["--from", stock.url, "--url", f"sqlite:///{tmp_path / 'agents.db'}"]
    done = subprocess.run([*program, *addresses, "--thread", "thread 01"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, STORED)
    assert "3/3" in done.stderr
    missing = subprocess.run([*program, "--from", "nowhere.db"], capture_output=True, text=True, check=False)
    assert missing.returncode == 2
    assert missing.stderr
