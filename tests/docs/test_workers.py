"""Pages with one program: its code runs and prints what its comments say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["workers.md", "domains.md", "runs.md", "capacity.md", "operations.md", "budgets.md"])
def test_its_code_prints_what_it_promises(page, tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
