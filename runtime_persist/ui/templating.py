"""The templates: every text is escaped, every name in them must exist."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from runtime_persist.inspector.spelling import ago, spelled
from runtime_persist.ui.page import taken_said

if TYPE_CHECKING:
    from collections.abc import Callable

_STATIC: Final = files("runtime_persist.ui") / "static"

KNOWN_STATES: Final = frozenset(
    {
        "succeeded", "running", "starting", "failed", "lost", "unknown", "waiting_approval", "waiting_runtime",
        "cancelled", "cancelling", "yielded", "queued", "retry_wait", "timed_out", "created", "pending", "started",
        "claimed", "open", "revoked", "alive", "draining", "gone", "reserved", "consumed", "released",
    }
)  # fmt: skip
"""States that have a colour; others are shown without one."""

_SIGNS: Final = {
    "succeeded": "✓", "failed": "✗", "unknown": "?", "running": "▶", "started": "▶", "starting": "▶", "lost": "✗",
    "waiting_approval": "‖", "cancelled": "■", "cancelling": "■", "timed_out": "◷", "queued": "…", "retry_wait": "↻",
    "pending": "…", "yielded": "‖", "open": "?", "revoked": "✓",
}  # fmt: skip
"""Signs before states: a colour alone says nothing to some."""


def static(name: str) -> str:
    """Return the text of a file that belongs to the pages."""
    return (_STATIC / name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """Return the templates' environment."""
    made = Environment(
        loader=PackageLoader("runtime_persist.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "moment": moment,
        "ago": ago,
        "spelled": spelled,
        "size": size,
        "state": state,
        "words": words,
        "taken": taken_said,
        "short": short,
        "sign": lambda name: _SIGNS.get(name, ""),
    }
    made.filters.update(filters)
    return made


def render(name: str, **said: Any) -> str:
    """Return a page, or a part of one."""
    return environment().get_template(name).render(**said)


def rendered_file(page: Any) -> str:
    """Return the page of a run as one file: it needs no network, and no script."""
    css = static("ui.css")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    # The hash allows this style sheet, and nothing else.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return render("file.html", page=page, css=Markup(css), policy=policy, live=False, allowed=False, csrf="")  # noqa: S704 (our own file)


def moment(us: int | None, now_us: int | None = None) -> Markup:
    """Return a time of the database clock as UTC; without its date when that is the date of ``now_us``."""
    if not us:
        return Markup("–")
    at = datetime.fromtimestamp(us / 1_000_000, UTC)
    today = None if now_us is None else datetime.fromtimestamp(now_us / 1_000_000, UTC).date()
    shown = at.strftime("%H:%M:%S.%f")[:-3] if at.date() == today else at.strftime("%Y-%m-%d %H:%M:%S")
    whole = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(whole, shown)


def size(count: int | None) -> str:
    """Return a number of bytes as people read it."""
    if count is None:
        return "–"
    if count < 10_000:  # noqa: PLR2004 (exact as long as that is short)
        return f"{count:,} B"
    for unit in ("kB", "MB", "GB"):
        count = round(count / 1_000)
        if count < 10_000:  # noqa: PLR2004
            return f"{count:,} {unit}"
    return f"{count:,} GB"


def state(name: str) -> str:
    """Return the class of a state in the style sheet."""
    return f"s-{name}" if name in KNOWN_STATES else "s-other"


def words(name: str) -> str:
    """Return a stable name as words."""
    return name.replace("_", " ")


def short(name: str) -> str:
    """Return the end of an id, by which people tell it from others."""
    return name if len(name) <= 12 else f"…{name[-10:]}"  # noqa: PLR2004


def as_json(value: Any) -> str:
    """Return a value as JSON that a page shows."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
