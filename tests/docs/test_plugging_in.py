"""docs/plugging-in.md: every code block runs, in order, and prints what its comments say; its limits are the code's."""

import re
import subprocess
import sys
from pathlib import Path

from runtime_persist.model import limits

PAGE = (Path(__file__).parents[2] / "docs" / "plugging-in.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def promised(code):
    """What the comments behind print say: up to a colon, when the comment explains itself."""
    found = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    return [re.sub(r"^(\d+): .*", r"\1", comment) for comment in found]


def test_every_block_runs_and_prints_what_it_promises(tmp_path):
    code = "\n".join(BLOCKS)
    assert code.count("print(") == len(promised(code))
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == promised(code)


def test_there_is_no_python_that_is_not_run():
    assert set(re.findall(r"```(\w+)", PAGE)) == {"python", "text"}
    assert len(BLOCKS) == PAGE.count("```python")


def test_the_limits_are_those_of_the_code():
    rows = re.findall(r"^\| [^|]+ \| ([\d,.]+)[^|]*\| `(\w+)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for shown, name in rows:
        value = getattr(limits, name)
        assert shown == (".".join(map(str, value)) if isinstance(value, tuple) else f"{value:,}"), name
