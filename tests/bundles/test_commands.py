"""The commands that look at runs say the same of a bundle's file as of the database it came from."""

import json

import pytest

from runtime_persist.cli.main import EXIT_CODES

NOWHERE = "sqlite:///never-opened.db"


@pytest.fixture
def file(run_id, exported, tmp_path):
    path = tmp_path / "run.zip"
    path.write_bytes(exported(run_id))
    return str(path)


def test_every_one_of_them_says_the_same_without_the_database(cli, runtime, run_id, file):
    (operation,) = json.loads(cli("op", "list", "--run", run_id, "--json").stdout)
    for arguments in (
        ("run", "show", run_id),
        ("run", "list"),
        ("run", "list", "--thread", "nobody"),
        ("run", "events", run_id),
        ("run", "events", run_id, "--after", "3"),
        ("op", "list", "--run", run_id),
        ("op", "list", "--unknown"),
        ("op", "show", operation["operation_id"]),
        ("op", "list", "--before", operation["operation_id"]),
        ("domain", "list", run_id),
        ("thread", "list"),
        ("thread", "list", "--after", "t"),
        ("thread", "show", "t", "--channel", "log"),
        ("run", "list", "--before", run_id),
    ):
        for form in ((), ("--json",)):
            ours = cli(*arguments, *form)
            theirs = cli(*arguments, *form, "--bundle", file, url=NOWHERE)
            assert (theirs.exit_code, theirs.stdout) == (ours.exit_code, ours.stdout), arguments
            assert ours.exit_code == 0


def test_inspect_says_the_same_but_for_the_database(cli, run_id, file):
    ours = json.loads(cli("inspect", run_id, "--json").stdout)
    theirs = json.loads(cli("inspect", run_id, "--json", "--bundle", file, url=NOWHERE).stdout)
    for found in (ours, theirs):
        del found["database"], found["question"]
    assert theirs == ours


def test_a_lease_and_a_thread_are_the_same_but_for_the_moment_and_what_is_compressed(cli, run_id, exported, tmp_path):
    path = tmp_path / "open.zip"
    path.write_bytes(exported(run_id, secrets=True))  # values without their secrets do not share what is equal
    file = str(path)
    shown = [json.loads(cli("lease", "show", run_id, "--json", *more).stdout) for more in ((), ("--bundle", file))]
    ours, theirs = shown
    assert ours.pop("as_of_us") > theirs.pop("as_of_us")
    assert theirs == ours
    assert theirs["state"] == "released"
    shown = [json.loads(cli("thread", "show", "t", "--json", *more).stdout) for more in ((), ("--bundle", file))]
    ours, theirs = ([one.pop("shared") for one in found["namespaces"]] for found in shown)
    assert [one | {"stored_bytes": None} for one in ours] == theirs
    assert ours[0]["stored_bytes"] > 0
    assert shown[0] == shown[1]
    for arguments in (("lease", "show", run_id), ("thread", "show", "t"), ("run", "why", run_id)):
        assert run_id in cli(*arguments, "--bundle", file, url=NOWHERE).stdout


def test_why_says_the_same_of_a_file_but_what_other_runs_and_workers_do(cli, run_id, file):
    ours, theirs = (json.loads(cli("run", "why", run_id, "--json", *more).stdout) for more in ((), ("--bundle", file)))
    (only,) = [one for one in theirs.pop("unknown") if one not in ours.pop("unknown", [])]
    assert "other runs" in only["what"]
    for found in (ours, theirs):  # words of how long ago
        for name in ("because", "evidence", "as_of_us"):
            del found[name]
    assert theirs == ours
    assert theirs["situation"] == "asks_a_person"


def test_another_run_is_not_in_it(cli, file):
    for arguments, code in (
        (("run", "show", "another"), "RUN_NOT_FOUND"),
        (("run", "events", "another"), "RUN_NOT_FOUND"),
        (("inspect", "another"), "RUN_NOT_FOUND"),
        (("op", "list", "--run", "another"), "RUN_NOT_FOUND"),
        (("op", "show", "another"), "OPERATION_NOT_FOUND"),
        (("domain", "list", "another"), "RUN_NOT_FOUND"),
        (("lease", "show", "another"), "RUN_NOT_FOUND"),
        (("run", "why", "another"), "RUN_NOT_FOUND"),
        (("thread", "show", "another"), "THREAD_NOT_FOUND"),
    ):
        refused = cli(*arguments, "--bundle", file, url=NOWHERE)
        assert (refused.exit_code, refused.stdout) == (EXIT_CODES["invalid"], "")
        assert refused.stderr.startswith(f"{code}: ")
