"""A deep agent is killed in its sub-agent's tool, and another process goes on.

deepagents brings clients of model providers along, one of which needs an older tenacity than the tests have: it is
installed beside them, with the versions of everything else that the tests have.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.soak.programs import Outside
from tests.support.leases import run_out

ROOT = Path(__file__).parents[2]
DEEPAGENTS = "deepagents==0.7.32"
NOT_PINNED = ("tenacity",)


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A folder with deepagents and all it needs."""
    folder = tmp_path_factory.mktemp("deepagents")
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    pinned = folder / "constraints.txt"
    pinned.write_text("".join(line for line in lines if not line.startswith(NOT_PINNED)))
    target = folder / "packages"
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", target, "-c", pinned, DEEPAGENTS]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_killed_in_a_sub_agents_tool_only_that_is_repeated_and_each_agent_has_its_journal(
    open_runtime, raw_of, shared_url, packages, tmp_path
):
    outside = Outside(tmp_path / "outside")
    raw = raw_of(open_runtime())
    environment = os.environ | {"PYTHONPATH": f"{packages}{os.pathsep}{ROOT}"}

    def process(mode):
        command = [sys.executable, "-m", "tests.middleware.deep_agents", shared_url, str(outside.path), mode]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)

    assert process("dies").returncode == -signal.SIGKILL
    run_out(raw)
    goes_on = process("goes on")
    assert goes_on.returncode == 0, goes_on.stderr
    found = json.loads(goes_on.stdout)
    assert found == {
        "texts": ["paid a", "Updated file /note.txt", "b is paid", "all is paid"],
        "files": ["/note.txt"],
        "loops": [9, 0, 4],
        "status": "succeeded",
    }
    told = Counter(words[0] for words in outside.lines())
    assert told == {"chief0": 1, "pay-a": 1, "clerk0": 1, "pay-b": 2, "clerk1": 1, "chief1": 1}
    assert len({words[1] for words in outside.lines() if words[0] == "pay-b"}) == 1  # under the key that it had
