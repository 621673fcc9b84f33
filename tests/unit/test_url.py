"""Database URLs: what each spelling means, and what is refused by name."""

from pathlib import Path

import pytest

from runtime_persist.dialects import parse_url
from runtime_persist.errors import InvalidUrl


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("sqlite:///agents.db", "agents.db"),
        ("sqlite:////tmp/agents.db", "/tmp/agents.db"),  # noqa: S108
        ("sqlite:///:memory:", ":memory:"),
        (":memory:", ":memory:"),
        ("agents.db", "agents.db"),
        ("./agents.db", "./agents.db"),
        (Path("agents.db"), "agents.db"),
        ("sqlite:///my%20agents.db", "my agents.db"),
        ("sqlite:///agents.db?timeout=2.5", "agents.db"),
    ],
)
def test_sqlite(url, location):
    found = parse_url(url)
    assert (found.dialect, found.location) == ("sqlite", location)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_both_names_of_postgresql_are_one(scheme):
    found = parse_url(f"{scheme}://me:secret@db.example:5433/agents?sslmode=require&connect_timeout=3")
    assert found.dialect == "postgresql"
    assert found.location.startswith("postgresql://me:secret@db.example:5433/agents")
    assert found.parameters == {"sslmode": "require", "connect_timeout": "3"}
    assert found.shown == "postgresql://me@db.example:5433/agents"


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("mysql://host/db", "mysql"),
        ("http://host", "http"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite://host/agents.db", "host"),
        ("sqlite:agents.db", "sqlite:///path"),
        ("sqlite:///agents.db?wal=1", "'wal'"),
        ("sqlite:///agents.db?timeout=soon", "soon"),
        ("sqlite:///missing/agents.db", "missing"),
        ("missing/agents.db", "missing"),
        (".", "folder"),
        ("postgresql://host/db?pool_size=5", "'pool_size'"),
        ("postgresql://host:port/db", "port"),
        ("postgresql+asyncpg://host/db", "postgresql+asyncpg"),
    ],
)
def test_what_cannot_be_used_is_named(url, names):
    with pytest.raises(InvalidUrl) as caught:
        parse_url(url)
    assert names in caught.value.message
    assert (caught.value.code, caught.value.kind) == ("INVALID_URL", "invalid")


def test_nothing_is_made_by_looking(tmp_path):
    parse_url("sqlite:///agents.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@host/db", "postgresql://me:s3cret@host:bad/db"])
def test_a_password_is_never_in_a_message(url):
    try:
        shown = parse_url(url).shown
    except InvalidUrl as error:
        shown = f"{error} {error.details}"
    assert "s3cret" not in shown
