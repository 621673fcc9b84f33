"""docs/workers.md: its code runs and prints what its comments say."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "workers.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
