"""docs/bundles.md: its code prints what its comments say; its numbers and commands are those of the code."""

import re
from pathlib import Path

from runtime_persist.cli.main import main
from runtime_persist.inspector.bundles import Limits
from runtime_persist.inspector.bundles.archive import ENTRIES_MAX
from runtime_persist.inspector.bundles.verify import FILE_BYTES_MAX
from tests.support.pages import check_prints

PAGE = (Path(__file__).parents[2] / "docs" / "bundles.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    check_prints(PAGE, tmp_path)


def test_its_numbers_are_those_of_the_code():
    assert f"{Limits().rows:,} rows" in PAGE
    assert f"{Limits().content_bytes // 2**30} GiB of content" in PAGE
    assert f"{ENTRIES_MAX:,} entries" in PAGE
    assert f"{FILE_BYTES_MAX // 2**30} GiB" in PAGE


def test_exactly_the_commands_it_names_take_a_file():
    (sentence,) = re.findall(r"^(`run list`.*?) take `--bundle FILE`", PAGE, re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"`([a-z ]+)`", sentence))
    found = set()
    for name, command in main.commands.items():
        for path, one in {
            name: command,
            **{f"{name} {sub}": one for sub, one in getattr(command, "commands", {}).items()},
        }.items():
            found |= {path for option in one.params if option.name == "bundle"}
    assert found == named
