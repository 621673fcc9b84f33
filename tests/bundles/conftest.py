"""The fixtures of this suite: runs with everything in them, the command line, and files of bundles."""

import pytest
from pydantic import SecretStr

from runtime_persist import operation
from runtime_persist.engine import run as flow
from runtime_persist.inspector.bundles import export
from tests.cli.conftest import cli  # noqa: F401
from tests.support.graphs import asks, chain, says
from tests.support.plugin import *  # noqa: F403

CANARY = "hunter2CANARY-5e1d"


@operation(name="charge", on_unknown="ask")
def charge(order: str) -> dict[str, str]:
    """Charge an order."""
    return {"order": order, "paid": "yes" * 1_000}


@pytest.fixture
def run_id(runtime):
    """A run with an operation, content outside its rows, a secret, and a question that it waits with."""
    nodes = {
        "long": says(["x" * 300 + str(number) for number in range(200)]),
        "secret": says({"deep": [SecretStr(CANARY)]}),
        "pay": lambda _: {"log": [charge("order-7")]},
        "ask": asks("go on?"),
    }
    runtime.bind(chain(nodes), name="g").invoke({"log": ["in"]}, {"configurable": {"thread_id": "t"}})
    (found,) = runtime.runs.list(thread_id="t")
    return found.run_id


@pytest.fixture
def exported(runtime):
    """Gives the bytes of a run's bundle."""

    def exports(run_id, **options):
        return b"".join(flow(export(runtime.engine, run_id, **options)))

    return exports
