"""The page of a run as one file: complete, escaped, without secrets, without anything to load or to run."""

import json
from html.parser import HTMLParser

import pytest

from runtime_persist.cli.main import EXIT_CODES
from tests.ui.conftest import CANARY
from tests.ui.test_pages import SECTIONS, section, text_of


class Elements(HTMLParser):
    """The names of a page's elements, and their attributes."""

    def __init__(self, page) -> None:
        super().__init__()
        self.names = set()
        self.attributes = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs


@pytest.fixture
def page_of(cli, exported, tmp_path):
    """Write the page of a run, and return it."""

    def writes(name):
        (tmp_path / f"{name}.zip").write_bytes(exported[name])
        done = cli("bundle", "show", str(tmp_path / f"{name}.zip"), "--html", str(tmp_path / f"{name}.html"))
        assert done.exit_code == 0, done.output
        return (tmp_path / f"{name}.html").read_text()

    return writes


@pytest.mark.parametrize("run", ["left", "taken over", "asked", "failed", "spent", "queued"])
def test_it_has_every_section_no_secret_nothing_to_load_and_nothing_to_run(page_of, run):
    page = page_of(run)
    for name in SECTIONS:
        assert section(page, name)
    assert CANARY not in page
    read = Elements(page)
    assert read.names & {"script", "link", "img", "iframe", "object", "form", "base"} == set()
    assert not [name for name, _ in read.attributes if name.startswith(("on", "hx-"))]
    assert [value for name, value in read.attributes if name in {"href", "src"} and value[0] != "#"] == []
    (policy,) = [value for name, value in read.attributes if name == "content" and "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_it_says_what_is_unknown_what_each_checkpoint_changed_and_of_what_it_is(page_of):
    left = text_of(page_of("left"))
    assert "whether charge(order='order-7') happened: try 1 began" in left
    asked = page_of("asked")
    assert "log changed" in text_of(section(asked, "checkpoints"))
    assert "**********" in section(asked, "checkpoints")
    assert "Who wrote it is not proved" in text_of(section(asked, "about"))


def test_the_command_says_what_it_wrote_and_replaces_nothing_unless_told(cli, exported, tmp_path):
    bundle, page = tmp_path / "run.zip", tmp_path / "run.html"
    bundle.write_bytes(exported["asked"])
    said = json.loads(cli("bundle", "show", str(bundle), "--html", str(page), "--json").stdout)
    assert said["bytes"] == page.stat().st_size
    again = cli("bundle", "show", str(bundle), "--html", str(page))
    assert (again.exit_code, again.stderr.startswith("INVALID_INPUT: ")) == (EXIT_CODES["invalid"], True)
    assert cli("bundle", "show", str(bundle), "--html", str(page), "--overwrite").exit_code == 0
    bundle.write_bytes(exported["asked"][:-1])
    broken = cli("bundle", "show", str(bundle), "--html", str(tmp_path / "other.html"))
    assert broken.exit_code == EXIT_CODES["corrupt"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.html", "run.zip"]
