"""Bundles of somebody one does not trust, of secrets, and of threads that grow (I1, I5, E1)."""

import json
import subprocess
import sys

import pytest
from pydantic import SecretStr

from runtime_persist import Runtime, operation
from runtime_persist.cli.main import EXIT_CODES
from tests.support.checkpoints import at
from tests.support.graphs import asks, chain, config, resume
from tests.values.crafted import CRAFTED, Forger, marker  # noqa: F401
from tests.values.graphs import keeps

CANARY = "hunter2CANARY-9c40"


def looks(run_id, file, page):
    """Every way to look into a bundle."""
    return [
        ("bundle", "verify", file),
        ("bundle", "show", file),
        ("bundle", "show", file, "--html", page, "--overwrite"),
        ("bundle", "diff", file, file),
        ("inspect", run_id, "--bundle", file),
        ("run", "list", "--bundle", file),
        ("run", "show", run_id, "--bundle", file),
        ("run", "why", run_id, "--bundle", file),
        ("run", "events", run_id, "--bundle", file),
        ("op", "list", "--bundle", file),
        ("ticket", "list", run_id, "--bundle", file),
        ("lease", "show", run_id, "--bundle", file),
        ("domain", "list", run_id, "--bundle", file),
        ("recover", "plan", run_id, "--bundle", file),
        ("thread", "list", "--bundle", file),
        ("thread", "show", "t", "--bundle", file),
        ("thread", "show", "t", "--channel", "value", "--bundle", file),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "own model",
        "pickle",
        *(pytest.param(one, marks=pytest.mark.exhaustive) for one in CRAFTED if one not in {"own model", "pickle"}),
    ],
)
def test_i1_whoever_looks_into_a_forged_bundle_imports_nothing_and_calls_nothing(
    shared_url,
    cli,
    marker,  # noqa: F811
    tmp_path,
    name,
):
    """Looked into and imported, in a process of its own: what a value names is shown as text, or is a typed error."""
    with Runtime.open(shared_url, serde=Forger()) as forger:
        forger.bind(keeps(lambda: name), name="keeps").invoke({}, at("t"))
        (info,) = forger.runs.list()
    file = str(tmp_path / "run.bundle")
    assert cli("bundle", "export", info.run_id, file, "--show-secrets").exit_code == 0
    program = (
        "import json, sys\n"
        "from click.testing import CliRunner\n"
        "from runtime_persist.cli.main import main\n"
        "done = [CliRunner().invoke(main, asked).exit_code for asked in json.loads(sys.argv[1])]\n"
        "print(json.dumps([done, 'pmod' in sys.modules]))\n"
    )
    asked = looks(info.run_id, file, str(tmp_path / "page.html"))
    asked.append(("bundle", "import", file, "--space", "theirs", "--url", f"sqlite:///{tmp_path / 'support.db'}"))
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(asked)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    exits, imported = json.loads(done.stdout)
    failed = {asked[number][:2]: code for number, code in enumerate(exits) if code}
    assert set(failed.values()) <= {EXIT_CODES["corrupt"]}, failed
    assert set(failed) <= {("thread", "show")}, failed  # which was asked for the value
    assert not imported
    assert not marker.exists()
    assert not (tmp_path / "ran").exists()


def test_i5_no_look_into_a_bundle_shows_a_secret(runtime, cli, tmp_path):
    @operation(name="login", redact={"token"})
    def login(secret, token):
        return [secret, SecretStr(token)]

    bound = runtime.bind(keeps(lambda: login(SecretStr(CANARY), token=CANARY)), name="keeps")
    bound.invoke({"value": SecretStr(CANARY)}, at("t"))
    (info,) = runtime.runs.list()
    file, page = tmp_path / "run.bundle", tmp_path / "page.html"
    assert cli("bundle", "export", info.run_id, str(file)).exit_code == 0
    for asked in looks(info.run_id, str(file), str(page)):
        for options in ([], ["--json"]) if "--html" not in asked else ([],):
            shown = cli(*asked, *options)
            assert CANARY not in shown.output, asked
    assert CANARY not in page.read_text()
    assert CANARY.encode() not in file.read_bytes()


def test_e1_a_bundle_says_which_channel_is_large_how_it_grew_and_what_is_shared(runtime, cli, tmp_path):
    document = [f"page {number} " + "x" * 3_000 for number in range(100)]
    graph = chain({"ask": asks("go on?"), "more": lambda state: {"log": [f"turn {len(state['log'])}"]}})
    bound = runtime.bind(graph, name="chat")
    bound.invoke({"log": document}, config())
    bound.invoke(resume("yes"), config())
    (info, *_) = runtime.runs.list()
    file = str(tmp_path / "run.bundle")
    assert cli("bundle", "export", info.run_id, file).exit_code == 0
    seen = [json.loads(cli("thread", "show", "t", "--json", *more).stdout) for more in ((), ("--bundle", file))]
    theirs, ours = (one["namespaces"][0] for one in seen)
    largest = theirs["channels"][0]
    assert largest["channel"] == "log"
    assert largest["bytes"] > 300_000
    assert ours["channels"] == theirs["channels"]
    assert "log" in cli("thread", "show", "t", "--bundle", file).stdout
