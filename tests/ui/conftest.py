"""The fixtures of this suite: a database in which everything happened, servers of the pages, and a browser."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

import httpx2
import pytest
from click.testing import CliRunner
from pydantic import SecretStr
from starlette.testclient import TestClient

from runtime_persist import Budget, Runtime, operation
from runtime_persist.cli.main import main
from runtime_persist.engine import run as flow
from runtime_persist.errors import BudgetExhausted, OperationUnknown
from runtime_persist.inspector.bundles import export
from runtime_persist.ui.app import create_app
from runtime_persist.ui.security import Access
from runtime_persist.ui.serving import names
from tests.fixtures.raw import connect
from tests.support.graphs import asks, chain, config, fails, says
from tests.support.leases import run_out
from tests.support.plugin import *  # noqa: F403
from tests.support.processes import forks
from tests.ui import chromium
from tests.ui.browser import Browser
from tests.ui.programs import payer, shop

TOKEN = "a-token-for-these-tests-only"  # noqa: S105
CANARY = "hunter2CANARY-ui-77"
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&amp;"
CLI = [sys.executable, "-m", "runtime_persist.cli"]


@operation(name="think", ticket="loop")
def think(number):
    return number


def happened(url):
    """Let everything happen that a page shows; return the runs by what is special about them."""
    runs = {}
    with forks() as fork, Runtime.open(url) as runtime:
        for thread in ("left", "taken over"):
            child = fork(payer, url, thread)
            child.until("there")
            child.kill()
        raw = connect(runtime.engine)
        run_out(raw)
        raw.close()
        bound = runtime.bind(shop(), name="shop")
        with contextlib.suppress(OperationUnknown):
            bound.invoke(None, config("taken over"))
        nodes = {
            "secret": says({"deep": [SecretStr(CANARY)], "long": ["x" * 200 + str(number) for number in range(40)]}),
            "ask": asks({"send it?": HOSTILE}),
        }
        runtime.bind(chain(nodes), name="asks").invoke({"log": ["in"]}, config("asked"))
        failing = runtime.bind(chain({"well": says("well"), "boom": fails(ValueError(HOSTILE))}), name="fails")
        with contextlib.suppress(ValueError):
            failing.invoke({"log": []}, config(f"thread {HOSTILE}"))
        loops = chain({"agent": lambda _: {"log": [think(number) for number in range(2)]}})
        with contextlib.suppress(BudgetExhausted):
            runtime.bind(loops, name="agent", budget=Budget(loops=1)).invoke({"log": []}, config("spent"))
        for number in range(60):
            runtime.runs.start("asks", {"log": []}, thread_id=f"queued {number}", idempotency_key=f"key-{number}")
        found = {record.thread_id: record.run_id for record in runtime.runs.list(limit=100)}
    for name in ("left", "taken over", "asked", "spent"):
        runs[name] = found[name]
    runs["failed"] = found[f"thread {HOSTILE}"]
    runs["queued"] = found["queued 59"]
    return runs


@pytest.fixture(scope="session")
def story(sqlite_template, tmp_path_factory):
    """A SQLite file in which everything happened, and the runs in it. Nobody writes to it."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("ui") / "agents.db")
    url = f"sqlite:///{path}"
    return url, happened(url)


@pytest.fixture
def own_story(story, tmp_path):
    """A copy of it to act in."""
    url, runs = story
    path = shutil.copy(url.removeprefix("sqlite:///"), tmp_path / "agents.db")
    return f"sqlite:///{path}", runs


@pytest.fixture(scope="session")
def exported(story):
    """The bytes of a run's bundle."""
    url, runs = story
    with Runtime.open(url) as runtime:
        return {name: b"".join(flow(export(runtime.engine, run_id))) for name, run_id in runs.items()}


@pytest.fixture
def cli():
    """Run the command line, in this process."""

    def runs(*arguments, url="sqlite:///never-opened.db"):
        environment = {"RUNTIME_PERSIST_URL": url, "COLUMNS": "250"}
        return CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)

    return runs


@contextlib.contextmanager
def serving(*arguments, token=None):
    """The pages as `runtime-persist ui` serves them, in a process of their own; what it said at its start."""
    environment = {name: value for name, value in os.environ.items() if name != "RUNTIME_PERSIST_UI_TOKEN"}
    if token is not None:
        environment["RUNTIME_PERSIST_UI_TOKEN"] = token
    command = [*CLI, "ui", *arguments, "--port", "0", "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            line = server.stdout.readline()
            assert line, server.stderr.read()
            yield json.loads(line)
        finally:
            server.send_signal(signal.SIGTERM)
            _, complained = server.communicate()
    assert (server.returncode, "Traceback" in complained) == (0, False), complained


@contextlib.contextmanager
def in_process(url, *, name="127.0.0.1", **said):
    """A client of the pages of a database, without a server between; it follows nothing by itself."""
    access = Access(names(name, 8321, []), **said)
    with Runtime.open(url, auto_setup=False) as runtime:
        made = TestClient(create_app(runtime, access), base_url=f"http://{name}:8321", follow_redirects=False)
        with made:
            yield made


@pytest.fixture(scope="session")
def pages(story):
    """A client of the pages of the story, read-only."""
    with in_process(story[0]) as made:
        yield made


@pytest.fixture
def acting(own_story):
    """A client of the pages of a copy, in which who has the token may act."""
    with in_process(own_story[0], actions=True, token=TOKEN) as made:
        yield made


@pytest.fixture(scope="session")
def served(story, tmp_path_factory):
    """A server of a copy of the story, in which who has the token may act; and the database."""
    path = shutil.copy(story[0].removeprefix("sqlite:///"), tmp_path_factory.mktemp("served") / "agents.db")
    with serving(f"sqlite:///{path}", "--allow-actions", token=TOKEN) as said:
        yield said["url"].rstrip("/"), f"sqlite:///{path}"


@pytest.fixture
def client():
    """A client that follows nothing by itself."""
    with httpx2.Client(timeout=60) as made:
        yield made


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium; skipped with the reason where there is none and none can be installed."""
    binary = chromium.found()
    if binary is None:
        why = chromium.reason()
        if why is not None:
            pytest.skip(why)
        assert chromium.main() == 0, "there is no Chromium (see above)"
        binary = chromium.found()
    made = Browser(binary, tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()
