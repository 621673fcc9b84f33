"""LangChain middleware: the model and tool calls of an agent, journalled. Needs the extra ``langchain``."""

from __future__ import annotations

from runtime_persist.adapters.middleware.calling import idempotency_key
from runtime_persist.adapters.middleware.hooks import Deny, Hook, HookCall, Patch
from runtime_persist.adapters.middleware.middleware import JournalMiddleware

__all__ = ["Deny", "Hook", "HookCall", "JournalMiddleware", "Patch", "idempotency_key"]
