"""A command of the command line writes to the database only if its name says so."""

import click

from runtime_persist import operation
from runtime_persist.cli.main import main
from runtime_persist.schema import metadata
from tests.support.graphs import asks, chain, config

WRITES = {
    "bundle import", "db collect", "db expire-delete-marks", "db upgrade", "demo", "domain revoke", "import",
    "op resolve", "recover apply", "run cancel", "run now", "run raise-budget", "run resume", "run retry",
    "run start", "ui", "worker run",
}  # fmt: skip
"""Commands whose names say that they change something, or that start what does."""
READS = {
    "bundle diff": "FILE FILE",
    "bundle export": "RUN NEW",
    "bundle show": "FILE",
    "bundle verify": "FILE",
    "db current": "",
    "db sql": "",
    "doctor": "",
    "domain list": "RUN",
    "graph list": "",
    "inspect": "RUN",
    "lease show": "RUN",
    "op list": "",
    "op show": "OPERATION",
    "recover plan": "RUN",
    "run events": "RUN",
    "run list": "",
    "run result": "RUN",
    "run show": "RUN",
    "run why": "RUN",
    "thread calls": "THREAD",
    "thread list": "",
    "thread show": "THREAD",
    "ticket list": "RUN",
    "worker list": "",
}
ANSWERS = {"run result": 5, "thread calls": 2}
"""Exit codes where there is nothing to show: the run has no result yet, and the thread no messages."""


@operation(name="charge")
def charge(order: str) -> str:
    """Charge an order."""
    return order


def leaves(command, path=""):
    for name, one in command.commands.items():
        if isinstance(one, click.Group):
            yield from leaves(one, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def test_every_command_reads_or_says_that_it_writes():
    assert set(leaves(main)) == WRITES | READS.keys()
    assert not WRITES & READS.keys()


def everything(raw):
    return {name: sorted(map(str, raw.rows(f"SELECT * FROM {name}"))) for name in metadata.tables}


def test_reading_commands_leave_every_row_as_it_is(cli, runtime, raw, tmp_path):
    nodes = {"pay": lambda _: {"log": [charge("7")]}, "ask": asks("go on?")}
    runtime.bind(chain(nodes), name="g").invoke({"log": []}, config("t"))
    (run,) = runtime.runs.list()
    file, new = tmp_path / "run.zip", tmp_path / "new.zip"
    assert cli("bundle", "export", run.run_id, str(file)).exit_code == 0
    names = {"RUN": run.run_id, "THREAD": "t", "FILE": str(file), "NEW": str(new)}
    names["OPERATION"] = raw.value("SELECT operation_id FROM rp_operations")
    before = everything(raw)
    for command, arguments in READS.items():
        given = [names.get(one, one) for one in arguments.split()]
        done = cli(*command.split(), *given)
        assert done.exit_code == ANSWERS.get(command, 0), (command, done.output)
        assert everything(raw) == before, command
