"""The fixtures of this suite: the command line on the test's database, and a worker that only reports itself."""

import pytest
from click.testing import CliRunner

from runtime_persist.cli.main import main
from runtime_persist.commands.report_instance import ReportInstance
from runtime_persist.model.ids import new_id
from tests.support.plugin import *  # noqa: F403

REGISTRY = "tests.support.graphs_registry:registry"


@pytest.fixture
def cli(shared_url):
    """Run the command line on the database, through the environment variable."""

    def runs(*arguments, given=None, url=shared_url, columns=250):
        environment = {"RUNTIME_PERSIST_URL": url, "COLUMNS": str(columns)}
        return CliRunner().invoke(main, arguments, input=given, env=environment, catch_exceptions=False)

    return runs


@pytest.fixture
def reported(runtime):
    """Report an instance that serves graphs, without anything that would claim."""
    number = iter(range(1, 100))

    def reports(worker_id="idle-worker", *, slots=2, active=(), ttl_us=60_000_000, **graphs):
        command = ReportInstance(
            space="default",
            command_id=new_id(),
            actor="worker:idle",
            instance_id=f"instance of {worker_id}",
            worker_id=worker_id,
            report_no=next(number),
            slots=slots,
            active_task_ids=tuple(active),
            host="here",
            graphs={name: tuple(versions) for name, versions in graphs.items()},
            ttl_us=ttl_us,
        )
        runtime.engine.coordinator.commit(command).result()

    return reports
