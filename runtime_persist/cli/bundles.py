"""bundle export | import | verify | show | diff."""

from __future__ import annotations

import os
from pathlib import Path

import click

from runtime_persist.cli.options import database_options, echo_json, json_option, opened, schema_option, url_option
from runtime_persist.cli.progress import bar
from runtime_persist.cli.screen import show as on_screen
from runtime_persist.cli.ui import pages
from runtime_persist.dialects import dialect_of, parse_url
from runtime_persist.engine import Engine
from runtime_persist.engine import run as flow
from runtime_persist.errors import InvalidInput
from runtime_persist.inspector.bundle import view_of
from runtime_persist.inspector.bundles import Limits, RecoveryBundle, Verified, export, open_bundle, verify
from runtime_persist.inspector.bundles.differ import differences
from runtime_persist.inspector.bundles.importing import import_bundle, space_of
from runtime_persist.inspector.bundles.verify import FILE_BYTES_MAX
from runtime_persist.inspector.render import bundle as render
from runtime_persist.inspector.render_bundles import differences_table, imported_table, verified_table
from runtime_persist.schema import migrate

_PATH = click.Path(path_type=Path, dir_okay=False)
_SIZE = click.IntRange(min=1)
_bytes_option = click.option(
    "--max-bytes", type=_SIZE, default=FILE_BYTES_MAX, show_default=True, help="Refuse a larger file."
)


@click.group("bundle")
def bundle_group() -> None:
    """Take all that is stored about a run into one file, and look at such files without a database."""


@bundle_group.command("export")
@click.argument("run_id")
@click.argument("file", type=_PATH)
@click.option("--show-secrets", is_flag=True, help="Leave SecretStr values, and values nothing can look into, in it.")
@click.option("--without-content", is_flag=True, help="Only rows, and the small values that lie in them.")
@click.option("--max-rows", type=_SIZE, default=Limits().rows, show_default=True, help="Of one table at most.")
@click.option(
    "--max-content-bytes", type=_SIZE, default=Limits().content_bytes, show_default=True, help="Of content at most."
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is there.")
@database_options
@json_option
def export_command(
    run_id: str, file: Path, show_secrets: bool, without_content: bool, max_rows: int, max_content_bytes: int,
    overwrite: bool, url: str, space: str, schema: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Write the recovery bundle of RUN_ID to FILE: a zip of its rows and content, of one moment.

    Secrets (SecretStr, SecretBytes) become stars. Texts are as they are: look before you hand it on.
    """
    _check_new(file, overwrite=overwrite)
    bounds = Limits(rows=max_rows, content_bytes=max_content_bytes)
    with opened(url, space, schema, auto_setup=False) as runtime, bar() as shown:
        task = shown.add_task("content", total=None)
        parts = flow(
            export(
                runtime.engine,
                run_id,
                secrets=show_secrets,
                without_content=without_content,
                bounds=bounds,
                progress=lambda done, total: shown.update(task, completed=done, total=total),
            )
        )
    _write(file, parts)
    _print(verify(file), as_json=as_json)


def _check_new(file: Path, *, overwrite: bool) -> None:
    if file.exists() and not overwrite:
        msg = f"{file} is there already; use another name, or --overwrite"
        raise InvalidInput(msg, path=str(file))


@bundle_group.command("import")
@click.argument("file", type=_PATH)
@click.option("--space", default=None, help="The space that is made for it (default: bundle-… by its hash).")
@_bytes_option
@url_option
@schema_option
@json_option
def import_command(file: Path, space: str | None, max_bytes: int, url: str, schema: str | None, as_json: bool) -> None:
    """Verify FILE and store it in a read-only space of a database, of which `--space` of other commands names it.

    Nothing is claimed, resumed or written there, and its clock stands still at the moment of the export. What died on
    the way is finished by importing the same file again. Tables are created in an empty database.
    """
    found = open_bundle(file, bytes_max=max_bytes)
    parsed = parse_url(url)
    dialect = dialect_of(parsed, schema)
    if migrate.current(parsed, dialect) is None:
        migrate.upgrade(parsed, dialect)
    engine = Engine(url, space=space or space_of(found), schema=schema, auto_setup=False)
    try:
        with bar() as shown:
            task = shown.add_task("pages", total=None)
            done = flow(
                import_bundle(
                    engine, found, progress=lambda done, total: shown.update(task, completed=done, total=total)
                )
            )
    finally:
        engine.close()
    if as_json:
        echo_json(done.model_dump())
    else:
        on_screen(imported_table(done))


def _write(file: Path, parts: list[bytes]) -> None:
    """Write a file whole or not at all."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with beside.open("xb") as written:
            written.writelines(parts)
            written.flush()
            os.fsync(written.fileno())
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        msg = f"{file} cannot be written: {error.strerror}"
        raise InvalidInput(msg, path=str(file)) from error


@bundle_group.command("verify")
@click.argument("file", type=_PATH)
@_bytes_option
@json_option
def verify_command(file: Path, max_bytes: int, as_json: bool) -> None:
    """Verify FILE, offline and without the application: nothing in it is executed.

    That proves that it is whole and as it was written, byte by byte. Who wrote it is not proved.
    """
    _print(verify(file, bytes_max=max_bytes), as_json=as_json)


@bundle_group.command("show")
@click.argument("file", type=_PATH)
@click.option(
    "--html", type=_PATH, default=None, metavar="PAGE",
    help="Write it to this file instead, as one page for a browser: no network, no script.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace PAGE if it is there.")
@_bytes_option
@json_option
def show_command(file: Path, html: Path | None, overwrite: bool, max_bytes: int, as_json: bool) -> None:
    """Verify FILE and show what `inspect` shows of the run, as of the moment it was read."""
    bundle = open_bundle(file, bytes_max=max_bytes)
    if html is not None:
        _check_new(html, overwrite=overwrite)
        page = pages("file").html_of(bundle).encode("utf-8", "backslashreplace")
        _write(html, [page])
        said = {"page": str(html), "bytes": len(page), "run_id": bundle.manifest.run_id}
        echo_json(said) if as_json else click.echo(f"{html}  ({len(page):,} bytes)")
        return
    found = view_of(bundle)
    if as_json:
        echo_json(found.model_dump())
    else:
        on_screen(render(found))


@bundle_group.command("diff")
@click.argument("first", type=_PATH)
@click.argument("second", type=_PATH)
@_bytes_option
@json_option
def diff_command(first: Path, second: Path, max_bytes: int, as_json: bool) -> None:
    """Show what is in SECOND that is not in FIRST, or otherwise: rows, columns, channels."""
    both: list[RecoveryBundle] = [open_bundle(file, bytes_max=max_bytes) for file in (first, second)]
    found = list(differences(*both))
    if as_json:
        echo_json([one.model_dump() for one in found])
    else:
        on_screen(differences_table(found))


def _print(found: Verified, *, as_json: bool) -> None:
    if as_json:
        echo_json(found.model_dump())
    else:
        on_screen(verified_table(found))
