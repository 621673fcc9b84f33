"""The fixtures every test may ask for."""

import os
import shutil
from pathlib import Path

from hypothesis import HealthCheck, settings

# How long an example takes, or is drawn, says something about the machine only.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest_plugins = [
    "tests.fixtures.fix_postgres",
    "tests.fixtures.fix_engine",
    "tests.fixtures.fix_world",
]

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 (each session makes a folder of its own in it)
MEMORY_BYTES = 4 * 1024**3


def pytest_configure() -> None:
    """Keep the tests' folders in memory where there is much of it.

    SQLite waits for the disk at each commit, which is most of what a small test on a file does. What is shown is the
    same: processes are killed here, computers are not, and what a dead process wrote is with the kernel.
    """
    if MEMORY_DISK.is_dir() and os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
