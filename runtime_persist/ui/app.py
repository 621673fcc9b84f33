"""The server of the pages: which address shows what. Reading changes nothing; acting needs the token."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from runtime_persist.engine import arun
from runtime_persist.errors import InvalidInput, RuntimePersistError
from runtime_persist.inspector.database import load_database
from runtime_persist.inspector.fleet import load_graphs, load_workers
from runtime_persist.model.ids import new_id
from runtime_persist.model.states import FINAL_RUN
from runtime_persist.queries.run_list import Wanted
from runtime_persist.ui import actions, loading
from runtime_persist.ui.security import SESSION_SECONDS, Access, Gate, same_origin
from runtime_persist.ui.templating import render, static

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from runtime_persist.runtime import Runtime

    Handler = Callable[[Request], Awaitable[Response]]

STATUSES: Final = (
    "unknown", "waiting_approval", "running", "starting", "waiting_runtime", "queued", "retry_wait", "cancelling",
    "failed", "timed_out", "cancelled", "succeeded",
)  # fmt: skip
"""What the list of runs is filtered by, what needs attention first."""
FORM_BYTES_MAX: Final = 1_048_576
_FIELDS_MAX: Final = 50
_HISTORY: Final = frozenset({"operations", "checkpoints", "events"})
_TYPES: Final = {"ui.css": "text/css", "htmx.min.js": "text/javascript"}
_STOP_POLLING: Final = 286  # htmx: swap this in, and ask no more
_OWN_PATH: Final = re.compile(r"/(?![/\\])[\x21-\x7e]*")
_STATUS: Final = {"invalid": 400, "conflict": 409, "fenced": 409, "failed": 409, "retry": 503, "unknown": 503}


class Pages:
    """The handlers, on one opened database."""

    def __init__(self, runtime: Runtime, access: Access) -> None:
        """Show what is in ``runtime`` to whom ``access`` allows it."""
        self._runtime = runtime
        self._engine = runtime.engine
        self._serde = runtime.checkpointer.serde
        self._access = access

    def routes(self) -> list[Route]:
        """Return which address is answered by what."""
        seen = self._seen
        return [
            Route("/", seen(self.runs)),
            Route("/fleet", seen(self.fleet)),
            Route("/runs/{run_id}", seen(self.run)),
            Route("/runs/{run_id}/news", seen(self.news)),
            Route("/runs/{run_id}/compare", seen(self.compare)),
            Route("/runs/{run_id}/history/{kind}", seen(self.history)),
            Route("/runs/{run_id}/{action}", self.act, methods=["POST"]),
            Route("/sign-in", self.sign_in, methods=["GET", "POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/static/{name}", self.static),
        ]

    def _seen(self, handler: Handler) -> Handler:
        """Let a handler answer only those who may read."""

        async def answer(request: Request) -> Response:
            if self._access.private and not self._access.signed_in(request):
                where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
                return RedirectResponse(f"/sign-in?{urlencode({'next': where})}", 303)
            _check_path(request)
            return await handler(request)

        return answer

    def _page(self, request: Request, name: str, status: int = 200, **said: Any) -> HTMLResponse:
        access = self._access
        shown = {
            "space": self._engine.space,
            "where": self._engine.url.shown,
            "live": True,
            "actions": access.actions,
            "private": access.private,
            "allowed": access.actions and bool(access.csrf_of(request)),
            "csrf": access.csrf_of(request),
            "path": request.url.path,
        }
        return HTMLResponse(render(name, **shown, **said), status)

    # --- reading ------------------------------------------------------------------------------------------------

    async def runs(self, request: Request) -> Response:
        """Show the newest runs that are wanted."""
        asked = {name: _said(request, name) for name in ("status", "graph", "thread", "text")}
        wanted = Wanted(asked["status"], asked["graph"], asked["thread"], asked["text"])
        found = await arun(loading.load_runs(self._engine, wanted, _said(request, "before")))
        graphs = [one.graph for one in await arun(load_graphs(self._engine))]
        filters = {name: value for name, value in asked.items() if value}
        older = None if found.next_before is None else "/?" + urlencode({**filters, "before": found.next_before})
        return self._page(
            request, "runs.html", found=found, asked=asked, filters=filters, older=older, graphs=graphs,
            statuses=STATUSES, paged=_said(request, "before") is not None,
        )  # fmt: skip

    async def fleet(self, request: Request) -> Response:
        """Show workers and graphs, and the database."""
        return self._page(
            request,
            "fleet.html",
            workers=await arun(load_workers(self._engine)),
            fleet_graphs=await arun(load_graphs(self._engine)),
            database=await arun(load_database(self._engine)),
        )

    async def run(self, request: Request) -> Response:
        """Show everything about one run."""
        page = await arun(loading.load_run(self._engine, self._serde, request.path_params["run_id"]))
        return self._page(
            request,
            "run.html",
            page=page,
            offered=actions.offered(page.view.run, page.plan),
            done=actions.DONE.get(_said(request, "done") or ""),
            follow=page.view.run.status not in FINAL_RUN and _said(request, "live") != "off",
            retry_key=new_id(),
        )

    async def news(self, request: Request) -> Response:
        """Give what happened to a run since an event, as parts of its page; nothing when nothing did."""
        run_id = request.path_params["run_id"]
        after = loading.number_of(_said(request, "after"), 0)
        shown = _said(request, "shown") or ""
        news = await arun(loading.load_news(self._engine, self._serde, run_id, after, shown))
        if news is None:
            return Response(status_code=204)
        ended = news.page.view.run.status in FINAL_RUN
        answer = self._page(
            request, "news.html", page=news.page, news=news, after=news.after, before=shown, follow=not ended
        )
        answer.status_code = _STOP_POLLING if ended else 200
        return answer

    async def compare(self, request: Request) -> Response:
        """Show what differs between two checkpoints of a run's thread."""
        run = await self._runtime.runs.aget(request.path_params["run_id"])
        ns, _, first = (_said(request, "a") or "").rpartition("@")
        other_ns, _, second = (_said(request, "b") or "").rpartition("@")
        if not first or not second or ns != other_ns:
            msg = "name two checkpoints of one namespace, with a and b"
            raise InvalidInput(msg)
        found = await arun(loading.load_comparison(self._engine, self._serde, run.thread_id, ns, first, second))
        return self._page(request, "compare.html", run=run, found=found)

    async def history(self, request: Request) -> Response:
        """Show older operations, checkpoints or events of a run, a page at a time."""
        kind = request.path_params["kind"]
        if kind not in _HISTORY:
            raise HTTPException(404)
        run_id = request.path_params["run_id"]
        found = await arun(loading.load_history(self._engine, run_id, kind, _said(request, "before")))
        older = None if found.next_before is None else f"{request.url.path}?{urlencode({'before': found.next_before})}"
        return self._page(request, "history.html", found=found, older=older)

    async def static(self, request: Request) -> Response:
        """Give a file that belongs to the pages."""
        kind = _TYPES.get(request.path_params["name"])
        if kind is None:
            raise HTTPException(404)
        return Response(static(request.path_params["name"]), media_type=kind, headers={"cache-control": "no-cache"})

    # --- acting -------------------------------------------------------------------------------------------------

    async def act(self, request: Request) -> Response:
        """Do something to a run, for somebody who may."""
        _check_path(request)
        form = await _form(request)
        refused = self._access.refusal(request, form)
        if refused is not None:
            return self._problem(request, refused[0], "REFUSED", refused[1])
        name = request.path_params["action"]
        if not actions.is_action(name):
            raise HTTPException(404)
        run_id = await actions.act(self._runtime.runs, name, request.path_params["run_id"], form)
        return RedirectResponse(f"/runs/{quote(run_id, safe='')}?{urlencode({'done': name})}", 303)

    async def sign_in(self, request: Request) -> Response:
        """Ask for the token, and give a cookie for it."""
        access = self._access
        if access.token is None:
            return self._problem(request, 403, "REFUSED", "These pages were started read-only: there is no token.")
        if request.method == "GET":
            return self._page(request, "sign_in.html", next=_own(_said(request, "next")), wrong=False)
        form = await _form(request)
        if not same_origin(request):
            return self._problem(request, 403, "REFUSED", "The request comes from another site.")
        if not access.is_token(form.get("token", "").strip()):
            return self._page(request, "sign_in.html", 401, next=_own(form.get("next")), wrong=True)
        answer = RedirectResponse(_own(form.get("next")), 303)
        answer.set_cookie(
            access.cookie, access.session(), max_age=SESSION_SECONDS, path="/", httponly=True, samesite="strict"
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Take the cookie back."""
        if not same_origin(request):
            return self._problem(request, 403, "REFUSED", "The request comes from another site.")
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(self._access.cookie, path="/", httponly=True, samesite="strict")
        return answer

    # --- what went wrong ----------------------------------------------------------------------------------------

    def _problem(self, request: Request, status: int, code: str, text: str) -> Response:
        run_id = request.path_params.get("run_id") if hasattr(request, "path_params") else None
        phrase = HTTPStatus(status).phrase
        return self._page(request, "problem.html", status, code=code, text=text, phrase=phrase, run_id=run_id)

    async def typed(self, request: Request, error: Exception) -> Response:
        """Say what an error of ours says."""
        if not isinstance(error, RuntimePersistError):
            raise error
        status = 404 if error.code.endswith("_NOT_FOUND") else _STATUS.get(error.kind, 500)
        return self._problem(request, status, error.code, error.message)

    async def http(self, request: Request, error: Exception) -> Response:
        """Say that there is no such page."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._problem(request, status, HTTPStatus(status).name, "There is no such page.")

    async def unexpected(self, request: Request, error: Exception) -> Response:
        """Say that something went wrong, not what: that is in the log of the server."""
        return self._problem(request, 500, "UNEXPECTED", f"{type(error).__name__}; the log of the server says more.")


def create_app(runtime: Runtime, access: Access) -> ASGIApp:
    """Return the pages of a database as an ASGI application.

    Args:
        runtime: the opened database.
        access: what is allowed, and to whom.

    """
    pages = Pages(runtime, access)
    handlers: dict[Any, Any] = {
        RuntimePersistError: pages.typed,
        HTTPException: pages.http,
        Exception: pages.unexpected,
    }
    return Gate(Starlette(routes=pages.routes(), exception_handlers=handlers), access)


def _check_path(request: Request) -> None:
    for value in request.path_params.values():
        _text(value)


def _said(request: Request, name: str) -> str | None:
    """Return a field of an address (None: it is empty; raises InvalidInput: no database can hold it)."""
    return _text(request.query_params.get(name, "")) or None


def _text(text: str) -> str:
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        msg = "a NUL or half of an emoji is nothing that could be stored"
        raise InvalidInput(msg)
    return text


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form (raises InvalidInput: it is too large, or is none)."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > FORM_BYTES_MAX:
            msg = f"a form has at most {FORM_BYTES_MAX:,} bytes"
            raise InvalidInput(msg)
    try:
        fields = parse_qsl(data.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError as error:
        msg = "this is no form"
        raise InvalidInput(msg) from error
    return {name: _text(value.replace("\r\n", "\n")) for name, value in fields}


def _own(where: str | None) -> str:
    """Return a place of our own to go to."""
    return where if where and _OWN_PATH.fullmatch(where) else "/"
