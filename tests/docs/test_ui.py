"""docs/ui.md: its code prints what its comments say; its commands, sections and numbers are those of the code."""

import re
from importlib.resources import files
from pathlib import Path

import click

from runtime_persist.cli.main import main
from runtime_persist.ui import changes, file, page, security
from runtime_persist.ui.actions import DONE
from tests.support.pages import check_prints

PAGE = (Path(__file__).parents[2] / "docs" / "ui.md").read_text()


def test_its_code_prints_what_it_promises(tmp_path):
    check_prints(PAGE, tmp_path)


def test_its_numbers_are_those_of_the_code():
    (port,) = [one.default for one in main.commands["ui"].params if one.name == "port"]
    assert f"http://127.0.0.1:{port}/" in PAGE
    assert f"the newest {page.ROWS_MAX} are on the page" in PAGE
    assert f"at most {changes.VALUE_BYTES_MAX:,} bytes each" in PAGE
    assert f"at least {security.TOKEN_CHARS_MIN} characters" in PAGE
    assert f"a cookie for {security.SESSION_SECONDS // 3_600} hours" in PAGE
    assert f"the newest {file.FILE_ROWS_MAX:,} operations" in PAGE
    assert f"the last {page.ROWS_MAX} checkpoints changed" in PAGE


def test_an_open_run_is_looked_at_as_often_as_it_says():
    poller = (files("runtime_persist.ui") / "templates" / "poller.html").read_text()
    assert 'hx-trigger="every 2s"' in poller
    assert "at every two seconds" in " ".join(PAGE.split())


def test_its_commands_and_options_are_there():
    commands = {"ui": main.commands["ui"], "bundle show": main.commands["bundle"].commands["show"]}
    named = re.findall(r"runtime-persist (ui|bundle show)([^#\n]*)", PAGE)
    assert {name for name, _ in named} == set(commands)
    for name, rest in named:
        known = {option for one in commands[name].params if isinstance(one, click.Option) for option in one.opts}
        assert set(re.findall(r"--[\w-]+", rest)) <= known
    known = {option for one in main.commands["ui"].params for option in one.opts}
    for option in ("--allow-actions", "--token-file", "--allow-host", "--host"):
        assert option in known
        assert f"`{option}`" in PAGE


def test_its_table_names_the_sections_of_the_page_and_its_requests_are_actions():
    body = (files("runtime_persist.ui") / "templates" / "run_body.html").read_text()
    shown = set(re.findall(r'<a href="#\w+">(\w+)</a>', body)) - {"Act", "About"}
    assert set(re.findall(r"^\| (\w+) \|", PAGE, re.MULTILINE)) - {"section"} == shown
    assert set(re.findall(r"/runs/RUN/([\w-]+)", PAGE)) <= set(DONE)
