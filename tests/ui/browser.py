"""A real browser, told what to do over its own protocol (a pipe, no port): pages, keys, pictures, complaints."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE_SECONDS = 60.0
"""For one answer; nothing is waited for by time, so this is only how long a hang is watched."""

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--mute-audio", "--hide-scrollbars", "--remote-debugging-pipe",
    "--force-prefers-reduced-motion",
)  # fmt: skip
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowDown": 40}


class BrowserError(AssertionError):
    """The browser refused something, or an expression in the page raised."""


class Browser:
    """A headless Chromium with an empty profile."""

    def __init__(self, binary: str, folder: Path) -> None:
        to_them, from_us = _pipe()
        to_us, from_them = _pipe()
        log = os.open(folder / "chromium.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        command = [binary, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
        self.pid = os.posix_spawn(
            binary,
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, to_them, 3),
                (os.POSIX_SPAWN_DUP2, from_them, 4),
            ],
            setpgroup=0,
        )
        for one in (to_them, from_them, log):
            os.close(one)
        self._write, self._read = from_us, to_us
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer; what is heard meanwhile is kept in ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        number = self._number
        while True:
            heard = self._hear()
            if heard.get("id") == number:
                if "error" in heard:
                    raise BrowserError(f"{method}: {heard['error']}")
                return dict(heard["result"])
            self.events.append(heard)

    def event(self, method: str, session: str) -> dict[str, Any]:
        """Wait for an event of a page, and take it and everything before it."""
        while True:
            for number, heard in enumerate(self.events):
                if heard.get("method") == method and heard.get("sessionId") == session:
                    del self.events[number]
                    return dict(heard["params"])
            self.events.append(self._hear())

    def _hear(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_SECONDS
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], max(until - time.monotonic(), 0))[0]:
                raise BrowserError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise BrowserError("the browser is gone")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    @contextlib.contextmanager
    def page(self, width: int = 1_280, height: int = 900, scheme: str = "light") -> Iterator[Page]:
        """A page with its own cookies."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            page.send(f"{domain}.enable")
        page.looks(width, height, scheme)
        try:
            yield page
        finally:
            self.send("Target.disposeBrowserContext", browserContextId=context)
            self.events.clear()

    def close(self) -> None:
        """End it, and all of its processes."""
        with contextlib.suppress(BrowserError, OSError):
            self.send("Browser.close")
        os.close(self._write)
        with contextlib.suppress(BrowserError):
            while True:
                self._hear()
        os.close(self._read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not where the browser wants its own."""
    ends = os.pipe()
    moved = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in ends]
    for one in ends:
        os.close(one)
    return moved[0], moved[1]


class Page:
    """One page of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def looks(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """Have the page this size, in this colour scheme."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        """Go to an address and wait until it is there."""
        with self.loading():
            found = self.send("Page.navigate", url=url)
        assert "errorText" not in found, found

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """Wait, behind what is done inside, until another document is loaded."""
        mine = self._session
        self._browser.events = [
            one for one in self._browser.events
            if not (one.get("sessionId") == mine and one.get("method") == "Page.loadEventFired")
        ]  # fmt: skip
        yield
        self._browser.event("Page.loadEventFired", mine)

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page (of a promise: what it comes to)."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression in the page is true."""
        said = json.dumps(condition)
        self.value(
            f"new Promise((done, fail) => {{ const until = Date.now() + {int(PATIENCE_SECONDS * 900)};"
            f"(function look() {{ if ({condition}) return done(true);"
            f" if (Date.now() > until) return fail(new Error('never: ' + {said})); setTimeout(look, 20); }})(); }})"
        )

    def click(self, selector: str) -> None:
        """Click, with the mouse, in the middle of what a selector finds."""
        where = self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)});"
            "found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1)

    def key(self, name: str, *, times: int = 1) -> None:
        """Press a key."""
        text = {"Enter": "\r", " ": " "}.get(name)
        for _ in range(times):
            said = {"key": name, "code": name.strip() or "Space", "windowsVirtualKeyCode": _KEYS[name]}
            self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text or "", **said)
            self.send("Input.dispatchKeyEvent", type="keyUp", **said)

    def tab_to(self, there: Callable[[], bool]) -> None:
        """Press the tabulator until the focus is where it should be."""
        for _ in range(200):
            self.key("Tab")
            if there():
                return
        raise BrowserError("the tabulator never comes there")

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.send("Input.insertText", text=text)

    def focused(self) -> str:
        """Return what a person at the keyboard would press now: the name of the focused element."""
        return str(
            self.value(
                "(() => { const one = document.activeElement;"
                "return one.getAttribute('aria-label') || one.innerText || one.name || one.tagName; })()"
            )
        ).strip()

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Store a picture of the page."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, fromSurface=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """Return what the browser complained of: errors of scripts, of the console, of the policy, of the network."""
        self.value("1")  # what was on its way is heard
        found: list[str] = []
        for one in self._browser.events:
            said = one.get("params", {})
            if one.get("sessionId") != self._session:
                continue
            if one["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(said["exceptionDetails"]))
            elif one["method"] == "Runtime.consoleAPICalled" and said["type"] in {"error", "warning", "assert"}:
                found.append(json.dumps(said["args"]))
            elif one["method"] == "Log.entryAdded" and said["entry"]["level"] in {"error", "warning"}:
                found.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
        return found

    def requested(self) -> list[str]:
        """Return every address that was asked for."""
        return [
            one["params"]["request"]["url"]
            for one in self._browser.events
            if one.get("sessionId") == self._session and one["method"] == "Network.requestWillBeSent"
        ]
