"""docs/recovery.md: its code prints what its comments say, and the commands it names are there."""

import re
import subprocess
import sys
from pathlib import Path

from runtime_persist.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "recovery.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)


def test_the_commands_and_options_it_names_are_there():
    for line in re.findall(r"^runtime-persist (recover .*)$", PAGE, re.MULTILINE):
        words = line.partition("#")[0].split()
        command = main.commands[words[0]].commands[words[1]]
        options = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= options
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) == {"--app"}
