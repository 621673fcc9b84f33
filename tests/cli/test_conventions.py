"""What all commands have in common: one line for an error, JSON where asked for, no colours in pipes, any width."""

import json
import os
import pty
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from runtime_persist.cli.main import EXIT_CODES, main
from tests.support.graphs import chain, says

CLI = [sys.executable, "-m", "runtime_persist.cli"]
NO_JSON = {"demo", "worker run", "db upgrade", "db current", "db sql", "db expire-delete-marks"}
"""They print one word, or what happens while it happens (worker run: --log-format json)."""


@pytest.fixture
def shared_url(sqlite_url):
    """How something is printed does not depend on the database."""
    return sqlite_url


@pytest.fixture
def run_id(runtime):
    runtime.bind(chain({"node": says("x")}), name="hello")
    return runtime.runs.start("hello", {"log": []}, thread_id="thread " * 10).run_id


def leaves(command, path=""):
    for name, one in command.commands.items():
        if isinstance(one, click.Group):
            yield from leaves(one, f"{path}{name} ")
        else:
            yield f"{path}{name}", one


def test_every_command_prints_json_when_it_is_asked_to():
    without = {path for path, one in leaves(main) if "as_json" not in {option.name for option in one.params}}
    assert without == NO_JSON


def test_every_command_and_every_option_says_what_it_is_for():
    for path, one in leaves(main):
        assert one.help, path
        for option in one.params:
            assert isinstance(option, click.Argument) or option.help, f"{path} {option.name}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "show"), "USAGE: Missing argument 'RUN_ID'. See: runtime-persist run show --help"),
        (("run", "list", "--nothing"), "USAGE: No such option '--nothing'. See: runtime-persist run list --help"),
        (("--nothing",), "USAGE: No such option '--nothing'. See: runtime-persist --help"),
        (("nothing",), "USAGE: No such command 'nothing'. See: runtime-persist --help"),
        (("worker", "--slots", "x", "a:b"), "USAGE: Invalid value for '--slots': 'x' is not a valid integer range"),
        (("op", "resolve", "x"), "INVALID_INPUT: say --happened or --did-not-happen"),
        (("op", "resolve", "x", "--did-not-happen", "--result", "1"), "INVALID_INPUT: --result is what a call"),
        (("op", "show", "nothing"), "OPERATION_NOT_FOUND: there is no operation 'nothing' in space 'default'"),
        (("run", "resume", "x", "--value", "{"), "INVALID_INPUT: --value is not JSON: "),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_code_2(cli, runtime, arguments, said):
    refused = CliRunner().invoke(
        main, arguments, prog_name="runtime-persist", env={"RUNTIME_PERSIST_URL": runtime.engine.url.shown}
    )
    assert (refused.exit_code, refused.stdout) == (EXIT_CODES["invalid"], "")
    assert refused.stderr.startswith(said.removesuffix(" range"))
    assert len(refused.stderr.splitlines()) == 1


def test_what_nobody_expected_is_one_line_without_a_traceback_and_exit_code_1(tmp_path):
    (tmp_path / "app.py").write_text("raise LookupError('the key is api_key=hunter2')")
    arguments = [*CLI, "worker", "app:registry", "--url", f"sqlite:///{tmp_path}/x.db"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "UNEXPECTED: LookupError: the key is api_key=… (RUNTIME_PERSIST_DEBUG=1 shows where)\n"
    shown = subprocess.run(
        arguments,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"RUNTIME_PERSIST_DEBUG": "1"},
    )
    assert "Traceback" in shown.stderr


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_ids_and_commands_are_never_broken(cli, run_id, columns):
    for arguments in (("run", "list"), ("run", "show", run_id), ("run", "why", run_id)):
        lines = cli(*arguments, columns=columns).stdout.splitlines()
        assert any(run_id in line for line in lines), arguments
    lines = cli("run", "why", run_id, columns=columns).stdout.splitlines()
    assert "runtime-persist worker MODULE:ATTRIBUTE" in lines
    text = [line for line in lines if not line.startswith("runtime-persist") and run_id not in line]
    assert max(len(line.rstrip()) for line in text) <= columns


def test_there_are_colours_on_a_terminal_and_none_in_a_pipe(runtime, run_id):
    arguments = [*CLI, "run", "why", run_id, "--url", runtime.engine.url.shown]
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    environment |= {"TERM": "xterm-256color"}
    piped = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment).stdout
    assert "\x1b" not in piped
    ours, theirs = pty.openpty()
    subprocess.run(arguments, stdout=theirs, check=True, env=environment)
    os.close(theirs)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert "\x1b[34mqueued" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).split()[:4] == piped.split()[:4]


@pytest.mark.parametrize("executed_by", ["inprocess", "subprocess"])
def test_a_worker_logs_json_lines_with_the_records_of_its_nodes(tmp_path, runtime, executed_by):
    (tmp_path / "app.py").write_text(
        "import logging\n"
        "from tests.support.graphs import chain\n"
        "def node(state):\n"
        "    logging.getLogger('the app').info('in the node')\n"
        "    return {'log': ['x']}\n"
        "registry = {'hello': chain({'node': node})}\n"
    )
    runtime.bind(chain({"node": says("x")}), name="hello")
    run = runtime.runs.start("hello", {"log": ["the input"]}, thread_id="t")
    worker = [
        "worker",
        "app:registry",
        "--until-idle",
        "--log-format",
        "json",
        "--runtime",
        executed_by,
        "--url",
        runtime.engine.url.shown,
    ]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [*CLI, *worker],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"] for line in lines if line["logger"].startswith("runtime_persist.worker")] == [
        "ready",
        "claimed",
        "finished",
        "ended",
    ]
    (ours,) = [line for line in lines if line["logger"] == "the app"]
    assert (ours["run_id"], ours["epoch"], ours["graph"], ours["thread_id"]) == (run.run_id, 1, "hello", "t")
    assert "the input" not in done.stderr
