"""docs/recovery.md: its code prints what its comments say, and the commands it names are there."""

import re
from pathlib import Path

from runtime_persist.cli.main import main
from tests.support.pages import check_prints

PAGE = (Path(__file__).parents[2] / "docs" / "recovery.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    check_prints(PAGE, tmp_path)


def test_the_commands_and_options_it_names_are_there():
    for line in re.findall(r"^runtime-persist (recover .*)$", PAGE, re.MULTILINE):
        words = line.partition("#")[0].split()
        command = main.commands[words[0]].commands[words[1]]
        options = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= options
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) == {"--app"}
