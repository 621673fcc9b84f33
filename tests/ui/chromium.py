"""Finds the browser of these tests, and installs it where that is possible: `python -m tests.ui.chromium`.

`make test` calls it. The variable CHROMIUM names a browser; else it is looked for; else Debian's package is installed,
as root. Without a browser, and without the right to install one, the tests that need it are skipped and say so. One
that is named and not there, or that cannot be installed by root, makes them fail.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
APT = "apt-get"


def found() -> str | None:
    """Return the browser (None: there is none)."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next((path for path in map(shutil.which, NAMES) if path), None)


def reason() -> str | None:
    """Return why none can be had here (None: it can be installed, or one is named)."""
    if os.environ.get("CHROMIUM"):
        return None
    if os.geteuid() != 0:
        return "no Chromium, and only root may install it; install it, or name one with CHROMIUM=…"
    if shutil.which(APT) is None:
        return f"no Chromium, and no {APT} to install it with; install it, or name one with CHROMIUM=…"
    return None


def main() -> int:
    """Install it where it is missing; the exit code is that of apt-get."""
    if found() is not None:
        return 0
    why = reason()
    if why is not None:
        print(f"tests of the pages: {why}", file=sys.stderr)  # noqa: T201
        return 0
    if os.environ.get("CHROMIUM"):
        print(f"CHROMIUM={os.environ['CHROMIUM']} is no program", file=sys.stderr)  # noqa: T201
        return 1
    print("installing chromium ...", flush=True)  # noqa: T201
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        [APT, "update"],
        [APT, "install", "--yes", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(command, env=environment, check=False, **quiet)  # type: ignore[call-overload]
        if done.returncode and command[1] == "install":
            print(done.stdout, file=sys.stderr)  # noqa: T201
            return int(done.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
