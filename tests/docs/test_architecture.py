"""ARCHITECTURE.md: every file it names is there, and what it says stands in a file stands there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
FOLDERS = (ROOT, ROOT / "runtime_persist")
NAMED = re.findall(r"`((?:[\w*]+/)*(?:[\w*]+\.(?:py|md|json|css)|(?<=/)))(?:: (\w+))?`", PAGE)
BESIDE = {"archive.py", "verify.py", "redact.py", "base.py", "__init__.py"}
"""Named beside another file of their folder."""


@pytest.mark.parametrize(("path", "symbol"), sorted(set(NAMED)), ids=lambda value: value or "whole")
def test_what_it_names_is_there(path, symbol):
    found = [file for folder in FOLDERS for file in (folder.rglob if path in BESIDE else folder.glob)(path.rstrip("/"))]
    assert found
    if symbol:
        assert re.search(rf"^(?:def |class )?{symbol}\b", found[0].read_text(), re.MULTILINE)


def test_its_layers_are_those_that_are_checked():
    (shown,) = re.findall(r"```\n(demo, testing .*?)```", PAGE, re.DOTALL)
    names = [name for line in shown.splitlines() for name in re.split(r"  +", line)[0].split(", ")]
    packages = {f.name for f in (ROOT / "runtime_persist").iterdir() if f.is_dir() and (f / "__init__.py").exists()}
    assert {name.split("/")[0] for name in names} == packages | {"plan"}
