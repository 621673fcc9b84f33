"""The fixtures of this suite: one database of each kind for the whole session, a thread of its own for each case."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime_persist import Runtime
from tests.support.plugin import pytest_pyfunc_call

DATABASES = ("sqlite-file", "sqlite-memory", "postgresql")


@pytest.fixture(scope="session")
def shared_runtime(
    sqlite_template: Path, tmp_path_factory, postgres_server, postgres_template
) -> Iterator[Callable[[str], Runtime]]:
    """Gives the session's runtime on a kind of database."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("equality") / "agents.db")
    dsn = postgres_server.create_database(postgres_template)
    urls = (f"sqlite:///{path}", "sqlite:///:memory:", dsn)
    opened = {name: Runtime.open(url) for name, url in zip(DATABASES, urls, strict=True)}
    yield opened.__getitem__
    for runtime in opened.values():
        runtime.close()
    postgres_server.drop_database(dsn)


__all__ = ["DATABASES", "pytest_pyfunc_call", "shared_runtime"]
