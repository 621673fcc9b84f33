"""A graph that children of the subprocess runtime execute: it streams, a model's tokens too."""

import itertools
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer

from runtime_persist.worker import RegisteredGraph
from tests.support.graphs import chain

MODEL = GenericFakeChatModel(messages=itertools.cycle([AIMessage("why not ?")]))


def node(_: Any) -> Any:
    get_stream_writer()("from the child")
    return {"log": [MODEL.invoke("why?").content]}


registry = {"g": RegisteredGraph(chain({"node": node}), runtime="subprocess")}
