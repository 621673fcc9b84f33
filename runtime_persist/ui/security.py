"""Who may do what with the pages: names they are reached by, the token, sessions, and requests forged elsewhere.

A page of this server is reached by a name that was said when it was started; another name in the ``Host`` header is
refused, so a foreign site whose name is made to point here (DNS rebinding) gets nothing. Whatever changes something
needs the token: in the ``Authorization`` header, or once in the sign-in form, which gives a cookie. A request with a
cookie also needs the word that only our own forms have.
"""

from __future__ import annotations

import hmac
import secrets
import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse

from runtime_persist.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_CHARS_MIN: Final = 16
SESSION_SECONDS: Final = 12 * 3_600
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers say that our own forms come from "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Access:
    """What is allowed, and to whom.

    Attributes:
        hosts: names (with port) that the pages are reached by.
        actions: whether anything may be changed at all.
        token: the secret that says who may (None: nobody).
        private: reading needs the token too.

    """

    hosts: frozenset[str]
    actions: bool = False
    token: str | None = None
    private: bool = False
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __post_init__(self) -> None:
        """Check that a token is there where one is needed, and that it cannot be guessed."""
        if (self.actions or self.private) and self.token is None:
            msg = "actions, and pages for other machines, need a token"
            raise InvalidInput(msg)
        if self.token is not None and len(self.token) < TOKEN_CHARS_MIN:
            msg = f"a token has at least {TOKEN_CHARS_MIN} characters; `openssl rand -hex 32` makes one"
            raise InvalidInput(msg)

    @property
    def cookie(self) -> str:
        """The name of the cookie: browsers send those of all ports of a host, so it has the ports in it."""
        ports = sorted({name.rpartition(":")[2] for name in self.hosts})
        return f"runtime-persist-{sha256(','.join(ports).encode()).hexdigest()[:8]}"

    def is_token(self, given: str) -> bool:
        """Return whether this is the token; how long that takes does not depend on how much of it is right."""
        return self.token is not None and hmac.compare_digest(self._mac(given), self._mac(self.token))

    def session(self) -> str:
        """Return a new session, as a cookie has it: until when it counts, signed."""
        until = str(int(time.time()) + SESSION_SECONDS)
        return f"{until}.{self._mac('session', until)}"

    def is_session(self, cookie: str) -> bool:
        """Return whether a cookie is a session that still counts."""
        until, _, mac = cookie.partition(".")
        if self.token is None or not hmac.compare_digest(self._mac("session", until), mac):
            return False
        return int(until) > time.time()  # it is signed, so it is ours, and a number

    def form_word(self, cookie: str) -> str:
        """Return the word that the forms of a session have, and nobody else knows."""
        return self._mac("form", cookie) if cookie else ""

    def signed_in(self, request: Request) -> bool:
        """Return whether a request comes from somebody who has the token."""
        return self.has_token(request) or self.is_session(request.cookies.get(self.cookie, ""))

    def has_token(self, request: Request) -> bool:
        """Return whether a request has the token in its header."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(given.strip())

    def csrf_of(self, request: Request) -> str:
        """Return the word for the forms of a page ("": nobody is signed in)."""
        cookie = request.cookies.get(self.cookie, "")
        return self.form_word(cookie) if self.is_session(cookie) else ""

    def refusal(self, request: Request, form: Mapping[str, str]) -> tuple[int, str] | None:
        """Return status and reason when a request may not change anything (None: it may)."""
        if not self.actions:
            return 403, "These pages were started read-only; start them with --allow-actions."
        if not same_origin(request):
            return 403, "The request comes from another site."
        if self.has_token(request):
            return None
        cookie = request.cookies.get(self.cookie, "")
        if not self.is_session(cookie):
            return 401, "Sign in with the token first."
        if not hmac.compare_digest(self.form_word(cookie), form.get("csrf", "")):
            return 403, "The form is not of this session; load the page anew."
        return None

    def _mac(self, *parts: str) -> str:
        key = sha256(self._salt + (self.token or "").encode("utf-8", "surrogatepass")).digest()
        said = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hmac.new(key, said, sha256).hexdigest()


def same_origin(request: Request) -> bool:
    """Return whether a request was made by our own pages, or by no page at all (a program)."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


class Gate:
    """Lets through what has a known name, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Stand before ``app``."""
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        named = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or named[0] not in self._access.hosts:
            refused = PlainTextResponse("This server does not answer to that name (see --allow-host).", 421)
            await refused(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)
