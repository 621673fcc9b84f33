"""The fork server with everything of an agent imported, the outside, and a database a case."""

from collections.abc import Iterator

import pytest

from runtime_persist.testing.proxy import PostgresProxy
from tests.faults.kit import ForkServer
from tests.journal_kills.killing import Postgres, Sqlite
from tests.journal_kills.outside import Outside


@pytest.fixture(scope="session")
def shop_server() -> Iterator[ForkServer]:
    with ForkServer("tests.journal_kills.programs") as server:
        yield server


@pytest.fixture(scope="session")
def outside() -> Iterator[Outside]:
    with Outside() as made:
        yield made


@pytest.fixture(scope="session")
def proxy(postgres_server) -> Iterator[PostgresProxy]:
    with PostgresProxy("127.0.0.1", postgres_server.port) as made:
        yield made


@pytest.fixture
def database_of(request):
    """Make the database of a case by its name."""
    made = []

    def makes(name: str) -> Sqlite | Postgres:
        if name == "sqlite":
            made.append(Sqlite(request.getfixturevalue("sqlite_url")))
        else:
            made.append(Postgres(request.getfixturevalue("postgres_url"), request.getfixturevalue("proxy")))
        return made[-1]

    yield makes
    for one in made:
        one.close()
