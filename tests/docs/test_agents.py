"""docs/agents.md: its code runs, in order, and prints what its comments say; the rows of its table are tests."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
KILLED = {
    "in a model call": "model0",
    "between model and tools": "between2",
    "in a tool, `ask`": "test_a_tool_that_was_running_is_asked_about_and_the_answer_is_its_message",
    "in a tool, `retry`": "test_killed_in_two_parallel_tools_each_is_repeated_once_under_its_own_key",
    "when a raw answer was stored": (
        "test_db03_a_stored_raw_answer_is_not_asked_for_again_only_the_hooks_that_are_left_run"
    ),
    "when a hook's decision was stored": "test_db04_a_decision_that_is_stored_and_not_applied_is_applied_once",
    "in a hook": "test_a_hook_that_was_running_is_fetched_or_indeterminate_and_never_asked_again",
}
"""Row of the table → the case or the test of tests/middleware/test_killed.py that shows it."""


def test_every_block_runs_and_prints_what_it_promises(tmp_path):
    code = "\n".join(BLOCKS)
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert code.count("print(") == len(promised) == 3
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == promised


def test_every_row_of_the_table_is_a_test():
    table = PAGE.split("## When the process dies")[1]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", table, re.MULTILINE)[1:]
    assert rows == list(KILLED)
    shown = (ROOT / "tests" / "middleware" / "test_killed.py").read_text()
    for name in KILLED.values():
        assert f'"{name}"' in shown or f"def {name}(" in shown, name
