"""Database URLs: ``sqlite:///path``, ``sqlite:///:memory:``, a bare file path, ``postgresql://…``, ``postgres://…``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from runtime_persist.errors import InvalidUrl

MEMORY = ":memory:"
_CONNECT_TIMEOUT_SECONDS = 10.0
_SQLITE_PARAMETERS = frozenset({"timeout"})
_POSTGRES_PARAMETERS = frozenset(
    {"host", "port", "user", "password", "dbname", "sslmode", "sslcert", "sslkey", "sslrootcert", "application_name",
     "connect_timeout"},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """A parsed URL.

    Attributes:
        dialect: ``sqlite`` or ``postgresql``.
        location: the file path, ``:memory:``, or the libpq URL.
        parameters: the parameters behind ``?``.

    """

    dialect: str
    location: str = field(repr=False)  # with the password
    parameters: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def whole(self) -> str:
        """Return the URL with its password, for another process of this machine that opens the same database."""
        if self.dialect != "sqlite" or self.location == MEMORY:
            return self.location
        query = f"?{urlencode(self.parameters)}" if self.parameters else ""
        return f"sqlite:///{quote(str(Path(self.location).absolute()))}{query}"

    @property
    def shown(self) -> str:
        """Return the URL without its password, for messages."""
        if self.dialect == "sqlite":
            return f"sqlite:///{self.location}"
        parts = urlsplit(self.location)
        host = parts.netloc.rsplit("@", 1)[-1]
        user = f"{quote(unquote(parts.username))}@" if parts.username else ""
        return f"postgresql://{user}{host}{parts.path}"


def parse_url(url: str | Path) -> DatabaseUrl:
    """Return what a URL or file path names.

    Raises:
        InvalidUrl: another scheme, an unknown parameter (named), no path, or a folder that does not exist.

    """
    text = str(url)
    if not text.strip():
        msg = "the database URL is empty; use sqlite:///agents.db or postgresql://host/database"
        raise InvalidUrl(msg)
    scheme, found, _ = text.partition("://")
    if not found:
        if text.startswith(("postgres:", "postgresql:")):
            msg = "a PostgreSQL URL is written postgresql://user:password@host:port/database"
            raise InvalidUrl(msg)
        if text.startswith("sqlite:") and text != MEMORY:
            msg = f"{text!r} is not a URL; a SQLite file is written sqlite:///path"
            raise InvalidUrl(msg, url=text)
        return _sqlite(text, {})
    if scheme == "sqlite":
        return _sqlite_url(text)
    if scheme in {"postgresql", "postgres"}:
        return _postgresql(text)
    msg = f"{scheme}:// is not supported; use sqlite:///path, a file path, postgresql:// or postgres://"
    raise InvalidUrl(msg, scheme=scheme)


def _parameters(query: str, allowed: frozenset[str]) -> dict[str, str]:
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    for name in parameters:
        if name not in allowed:
            msg = f"unknown parameter {name!r} in the database URL; known: {', '.join(sorted(allowed))}"
            raise InvalidUrl(msg, parameter=name)
    return parameters


def _sqlite_url(text: str) -> DatabaseUrl:
    body, _, query = text.removeprefix("sqlite://").partition("?")
    if body and not body.startswith("/"):
        msg = f"{text!r} names a host; a SQLite file is written sqlite:///relative/path or sqlite:////absolute/path"
        raise InvalidUrl(msg, url=text)
    parameters = _parameters(query, _SQLITE_PARAMETERS)
    if "timeout" in parameters:
        try:
            float(parameters["timeout"])
        except ValueError as error:
            msg = f"parameter timeout={parameters['timeout']!r} is not a number of seconds"
            raise InvalidUrl(msg, parameter="timeout") from error
    return _sqlite(unquote(body[1:]), parameters)


def _sqlite(path: str, parameters: dict[str, str]) -> DatabaseUrl:
    if not path:
        msg = "the SQLite URL names no file; write sqlite:///agents.db, or sqlite:///:memory: for a throw-away one"
        raise InvalidUrl(msg)
    if path != MEMORY:
        parent = Path(path).absolute().parent
        if not parent.is_dir():
            msg = f"the folder {str(parent)!r} of the SQLite file does not exist; make it first"
            raise InvalidUrl(msg, path=path)
        if Path(path).is_dir():
            msg = f"{path!r} is a folder, not a SQLite file"
            raise InvalidUrl(msg, path=path)
    return DatabaseUrl("sqlite", path, parameters)


def _postgresql(text: str) -> DatabaseUrl:
    parts = urlsplit(text)
    parameters = _parameters(parts.query, _POSTGRES_PARAMETERS)
    try:
        _ = parts.port
    except ValueError:
        # Without the native error: it shows what stands behind the colon, which can be a password.
        msg = "the port in the database URL is not a number (is a # / ? or @ in the password not written as %23 …?)"
        raise InvalidUrl(msg) from None
    _seconds(parameters)
    return DatabaseUrl("postgresql", "postgresql" + text[text.index("://") :], parameters)


def _seconds(parameters: dict[str, str]) -> float:
    """Return ``connect_timeout``; zero and less mean the default, as nobody should wait for ever."""
    given = parameters.get("connect_timeout", "0")
    try:
        seconds = float(given)
    except ValueError as error:
        msg = f"parameter connect_timeout={given!r} is not a number of seconds"
        raise InvalidUrl(msg, parameter="connect_timeout") from error
    return seconds if seconds > 0 else _CONNECT_TIMEOUT_SECONDS


def asyncpg_address(location: str) -> tuple[str, float]:
    """Return a libpq URL as asyncpg takes it, and how many seconds connecting may last.

    ``connect_timeout`` is taken out: asyncpg would send it to the server as a setting.
    """
    parts = urlsplit(location)
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    seconds = _seconds(parameters)
    parameters.pop("connect_timeout", None)
    return urlunsplit(parts._replace(query=urlencode(parameters))), seconds
