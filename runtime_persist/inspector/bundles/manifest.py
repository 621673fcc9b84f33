"""The models of a bundle's manifest and rows. The JSON Schema in docs/bundle.schema.json is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema

from runtime_persist.queries.bundles import PARTS, Part

FORMAT: Final = 1
FORMATS: Final = {"payload": 2, "page": 1, "checkpoint": 2}
"""Versions of what is inside rows and content, as this code knows them."""
SCHEMA_URI: Final = "https://json-schema.org/draft/2020-12/schema"
ENTRY_NAME: Final = r"^(rows/[a-z_]+\.jsonl|content/[0-9a-f]{32})$"
_INT64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
_SIZE = Annotated[int, Field(ge=0, le=2**32 - 1)]


class _Strict(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, ser_json_bytes="base64", val_json_bytes="base64"
    )


class Entry(_Strict):
    """One entry of the file besides the manifest.

    Attributes:
        name: ``rows/<part>.jsonl``: a row of that table a line; ``content/<address>``: content that rows refer to.
        size: bytes.
        sha256: of these bytes, in hexadecimal digits.
        rows: how many rows it has (None: it is content).

    """

    name: str = Field(pattern=ENTRY_NAME, max_length=100)
    size: _SIZE
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    rows: _SIZE | None


class Definition(_Strict):
    """The fingerprints of a graph's definition: that the run was started with, and that was registered last."""

    run: str | None
    registered: str | None


class Source(_Strict):
    """The database that the bundle was read from; not where it is."""

    dialect: str
    version: str
    warning: str | None


class Redaction(_Strict):
    """What was done to values before they left the database.

    Attributes:
        redacted: SecretStr and SecretBytes are stars (of the same length).
        starred: values in which there were some.
        withheld: values that cannot be looked into without their code, and were left out whole.

    """

    redacted: bool
    starred: _SIZE
    withheld: _SIZE


class Manifest(_Strict):
    """What a bundle holds. Times are microseconds since 1970 by the database's clock.

    Attributes:
        format: of the bundle.
        formats: of payload references, pages and checkpoints inside of it.
        schema_version: of the tables.
        read_us: the moment of the read: all rows are of that one moment.
        content: ``complete``: all that rows refer to is here; ``none``: it was left out.
        entries: all entries, in the order of the file.

    """

    format: Literal[1]
    formats: dict[str, int]
    schema_version: str
    made_by: str
    space: str
    run_id: str
    thread_id: str
    graph: str
    definition: Definition
    source: Source
    read_us: _INT64
    content: Literal["complete", "none"]
    redaction: Redaction
    entries: tuple[Entry, ...]

    def encoded(self) -> bytes:
        """Return the bytes of the manifest's entry."""
        return self.model_dump_json(indent=1).encode() + b"\n"


def _type_of(python_type: type, *, null: bool) -> Any:
    kind: Any = _INT64 if python_type is int else python_type
    return kind | None if null else kind


def _row_model(part: Part) -> type[_Strict]:
    fields: dict[str, Any] = {
        column.name: (_type_of(column.type.python_type, null=bool(column.nullable)), ...) for column in part.columns
    }
    title = "".join(word.title() for word in part.name.split("_")) + "Row"
    said = f"A row of {part.table.name}, without the space. Bytes are base64 (of the URL's alphabet)."
    return create_model(title, __base__=_Strict, __doc__=said, **fields)


ROW_MODELS: Final = {part.name: _row_model(part) for part in PARTS}


def row_line(part: str, row: Any) -> bytes:
    """Return a row as its line."""
    model = ROW_MODELS[part]
    named = {name: _plain(row[name]) for name in model.model_fields}
    return model.model_construct(**named).model_dump_json().encode() + b"\n"


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (memoryview, bytearray)) else value


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the manifest, and under ``$defs`` of the rows of each part."""
    models = [(model, "serialization") for model in (Manifest, *ROW_MODELS.values())]
    _, made = models_json_schema(models, title="Recovery bundle of runtime_persist")  # type: ignore[arg-type]
    lines = {f"rows/{name}.jsonl": {"$ref": f"#/$defs/{model.__name__}"} for name, model in ROW_MODELS.items()}
    return {"$schema": SCHEMA_URI, **made, "$ref": "#/$defs/Manifest", "x-rows": lines}
