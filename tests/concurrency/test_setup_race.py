"""Many processes open one empty database at once, and many threads of one process open a database each."""

import json
import subprocess
import sys

from sqlalchemy import inspect

from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import Engine
from runtime_persist.schema import metadata, migrate
from tests.fixtures.world import World

PROCESSES = 6
# One process imports everything and forks the others; they open the database when the pipe is closed.
OPENERS = """
import json, os, sys
from runtime_persist.engine import Engine

hold, go = os.pipe()
children = []
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(hold, 1)
        engine = Engine(sys.argv[1])
        secret = engine.coordinator.keys.secret.hex()
        engine.close()
        os.write(1, (secret + "\\n").encode())
        os._exit(0)
    children.append(child)
os.close(go)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def test_all_succeed_and_agree(empty_url):
    command = [sys.executable, "-c", OPENERS, empty_url, str(PROCESSES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    unexpected = [line for line in done.stderr.splitlines() if "WAL-reset" not in line]
    assert (done.returncode, unexpected) == (0, [])
    found = done.stdout.split()
    assert len(found) == PROCESSES
    secrets = set(found)
    assert len(secrets) == 1
    engine = Engine(empty_url)
    try:
        with World(engine) as world:
            assert world.raw.rows(f"SELECT version_num FROM {migrate.VERSION_TABLE}") == [
                {"version_num": migrate.VERSION}
            ]
            assert [bytes(row["secret"]).hex() for row in world.raw.rows("SELECT secret FROM rp_spaces")] == [*secrets]
    finally:
        engine.close()


# Threads that run one another's DDL end a process with a segmentation fault, so it is one of its own.
THREADS = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from runtime_persist.engine import Engine

urls = json.loads(sys.argv[1])
together = threading.Barrier(len(urls))

def opens(url):
    together.wait()
    Engine(url).close()

with ThreadPoolExecutor(len(urls)) as threads:
    list(threads.map(opens, urls))
"""


def test_threads_that_set_up_databases_at_once_do_not_mix_them_up(tmp_path, postgres_dsn):
    files = [f"sqlite:///{tmp_path / f'{n}.db'}" for n in range(6)]
    command = [
        sys.executable,
        "-c",
        THREADS,
        json.dumps([*files, "sqlite:///:memory:", "sqlite:///:memory:", postgres_dsn]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for url in [*files, postgres_dsn]:
        parsed = parse_url(url)
        dialect = dialect_of(parsed)
        assert migrate.current(parsed, dialect) == migrate.VERSION
        assert dialect.with_connection(parsed.location, lambda one: {*inspect(one).get_table_names()}) == {
            *metadata.tables,
            migrate.VERSION_TABLE,
        }


def test_opening_again_changes_nothing(shared_url, open_engine):
    first = open_engine(shared_url)
    with World(first) as world, world.nothing_written():
        open_engine(shared_url).setup()
        first.setup()
