"""Files of bundles: every changed byte is named, and nothing of a hostile file is followed."""

import io
import json
import random
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from runtime_persist.cli.main import EXIT_CODES
from runtime_persist.errors import BundleTooLarge, CheckpointCorrupt, InvalidInput, UnknownFormat
from runtime_persist.inspector.bundles import open_bundle
from runtime_persist.inspector.bundles.archive import MANIFEST, damaged_byte, encoded
from runtime_persist.inspector.bundles.verify import parsed
from tests.support.graphs import chain, config, says

FLIPS = 150


@pytest.fixture
def shared_url(sqlite_url):
    """A file does not depend on the database it came from (test_bundles.py has both)."""
    return sqlite_url


@pytest.fixture
def data(exported, run_id):
    return exported(run_id)


@pytest.fixture
def repacked(data):
    """Gives the file with other entries, otherwise exactly as this package writes files."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]

    def repacks(change):
        return b"".join(encoded(change(dict(entries)).items()))

    return repacks


def test_it_is_a_zip_of_stored_entries_that_every_tool_reads(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names[0] == MANIFEST
        assert names[1:] == sorted(names[1:])
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_flipped_bit_is_named_with_its_entry_and_offset(data):
    """At random places, and at each of the edges that an archive has."""
    dice = random.Random(7)
    places = {dice.randrange(len(data)) for _ in range(FLIPS)} | {*range(60), *range(len(data) - 80, len(data))}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        inside = {info.filename: info.header_offset for info in archive.infolist()}
    for at in sorted(places):
        changed = bytearray(data)
        changed[at] ^= 1 << dice.randrange(8)
        with pytest.raises(CheckpointCorrupt) as refused:
            parsed(bytes(changed))
        details = refused.value.details
        assert details["offset"] == at, refused.value.message
        if details["entry"] in inside and at < _directory_at(data):
            assert max(inside.values(), key=lambda start: start if start <= at else -1) == inside[details["entry"]]


@pytest.mark.exhaustive
def test_every_byte_of_a_small_file_is_named_when_it_is_flipped(runtime, exported):
    runtime.bind(chain({"node": says("x")}), name="g").invoke({"log": []}, config("t"))
    data = exported(runtime.runs.list()[0].run_id)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        with pytest.raises(CheckpointCorrupt) as refused:
            parsed(bytes(changed))
        assert refused.value.details["offset"] == at, refused.value.message
        assert refused.value.details["entry"]


def _directory_at(data):
    return struct.unpack("<L", data[-6:-2])[0]


@pytest.mark.parametrize("size", [1, 2, 100, 5_000])
def test_one_damaged_byte_is_found_by_its_checksum_and_two_are_not_made_up(size):
    dice = random.Random(size)
    good = dice.randbytes(size)
    for at in {0, size // 2, size - 1}:
        changed = bytearray(good)
        changed[at] ^= dice.randrange(1, 256)
        assert damaged_byte(bytes(changed), zlib.crc32(good)) == at
    if size > 2:
        changed[0] ^= 1
        changed[size // 2] ^= 1
        assert damaged_byte(bytes(changed), zlib.crc32(good)) is None


def test_a_cut_or_longer_file_is_refused(data):
    for changed in (b"", data[:1], data[:100], data[: len(data) // 2], data[:-1], data[1:], data + b"\0", data + data):
        with pytest.raises(CheckpointCorrupt):
            parsed(changed)


def _with(entries, **changed):
    return {**entries, **changed}


def _manifest(change):
    """Change the manifest, and write it as this package would."""

    def changes(entries):
        said = json.loads(entries[MANIFEST])
        change(said)
        return {**entries, MANIFEST: json.dumps(said, indent=1).encode() + b"\n"}

    return changes


def _named(name):
    def change(said):
        said["entries"][0]["name"] = name

    return _manifest(change)


HOSTILE = {
    "a path upwards": _named("../../etc/passwd"),
    "an absolute path": _named("/etc/passwd"),
    "a folder of windows": _named("content\\..\\x"),
    "an entry twice": _manifest(lambda said: said["entries"].insert(1, said["entries"][0])),
    "a size below none": _manifest(lambda said: said["entries"][0].update(size=-1)),
    "a size of petabytes": _manifest(lambda said: said["entries"][0].update(size=2**50)),
    "a size of gigabytes": _manifest(lambda said: said["entries"][0].update(size=2**32 - 1)),
    "an unknown field": _manifest(lambda said: said.update(command="rm")),
    "a missing part": _manifest(lambda said: said["entries"].pop()),
    "another run": _manifest(lambda said: said.update(run_id="another")),
    "a number as text": _manifest(lambda said: said.update(read_us="1")),
    "no manifest": lambda entries: {name: data for name, data in entries.items() if name != MANIFEST},
    "an entry more": lambda entries: _with(entries, extra=b"x"),
    "a manifest that is a list": lambda entries: _with(entries, **{MANIFEST: b"[]"}),
    "a manifest without end": lambda entries: _with(entries, **{MANIFEST: b"[" * 1_000_000}),
    "a number of many digits": lambda entries: _with(entries, **{MANIFEST: b"9" * 100_000}),
    "a manifest of nothing": lambda entries: _with(entries, **{MANIFEST: b""}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_manifest_is_refused(repacked, what):
    with pytest.raises(CheckpointCorrupt) as refused:
        parsed(repacked(HOSTILE[what]))
    assert refused.value.details["entry"]


def _zip(*entries, method=zipfile.ZIP_STORED, mode=None):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            if mode is not None:
                info.external_attr = mode << 16
            archive.writestr(info, content)
    return made.getvalue()


@pytest.mark.parametrize("what", ["compressed", "a link", "a comment", "dates", "another zip"])
def test_any_other_zip_is_refused(data, what):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    if what == "a comment":
        changed = data[:-2] + struct.pack("<H", 3) + b"abc"
    elif what == "dates":
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name, content in entries:
                archive.writestr(zipfile.ZipInfo(name, (2026, 12, 1, 0, 0, 0)), content)
        changed = made.getvalue()
    else:
        changed = {
            "compressed": lambda: _zip(*entries, method=zipfile.ZIP_DEFLATED),
            "a link": lambda: _zip(*entries, mode=0o120777),
            "another zip": lambda: _zip(("readme.txt", b"hello")),
        }[what]()
    with pytest.raises(CheckpointCorrupt):
        parsed(changed)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    bomb = tmp_path / "bomb.zip"
    bomb.write_bytes(_zip((MANIFEST, b"0" * 100_000_000), method=zipfile.ZIP_DEFLATED))
    with pytest.raises(CheckpointCorrupt):
        open_bundle(bomb)
    with pytest.raises(BundleTooLarge):
        open_bundle(bomb, bytes_max=1_000)
    with pytest.raises(InvalidInput):
        open_bundle(tmp_path / "nothing.zip")
    with pytest.raises(InvalidInput):
        open_bundle(tmp_path)


@pytest.mark.parametrize("field", ["format", "formats", "schema_version"])
def test_an_unknown_version_is_refused_as_such(repacked, field):
    with pytest.raises(UnknownFormat):
        parsed(repacked(_manifest(lambda said: said.update({field: {"payload": 9} if field == "formats" else 9}))))


def _signed(name, change):
    """Change an entry, and give the manifest its new hash: as whoever may write anything would."""

    def changes(entries):
        import hashlib

        changed = change(entries[name])
        said = json.loads(entries[MANIFEST])
        (entry,) = (entry for entry in said["entries"] if entry["name"] == name)
        rows = None if entry["rows"] is None else changed.count(b"\n")
        entry.update(size=len(changed), sha256=hashlib.sha256(changed).hexdigest(), rows=rows)
        return {**entries, name: changed, MANIFEST: json.dumps(said, indent=1).encode() + b"\n"}

    return changes


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("events", lambda data: data[: data.index(b"\n") + 1]),
        ("events", lambda data: data + data[: data.index(b"\n") + 1]),
        ("events", lambda data: b" " + data),
        ("events", lambda data: b"{}\n" + data),
        ("events", lambda data: data[:-1]),
        ("runs", lambda _: b""),
        ("runs", lambda data: data.replace(b'"thread_id":"t"', b'"thread_id":"u"')),
        ("attempts", lambda _: b""),
        ("operations", lambda _: b""),
        ("checkpoints", lambda _: b""),
        ("runs", lambda data: data.replace(b'"input":"', b'"input":"AAAA')),
    ],
)
def test_rows_that_do_not_fit_together_are_refused_although_their_hashes_are_right(repacked, part, change):
    with pytest.raises((CheckpointCorrupt, UnknownFormat)) as refused:
        parsed(repacked(_signed(f"rows/{part}.jsonl", change)))
    assert part in refused.value.message or "run" in refused.value.message


def test_content_that_was_changed_and_signed_is_noticed_by_its_size(repacked, data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        name = next(name for name in archive.namelist() if name.startswith("content/"))
    for change in (lambda content: content + b"x", lambda _: b""):
        with pytest.raises((CheckpointCorrupt, UnknownFormat)):
            parsed(repacked(_signed(name, change)))


def test_the_command_line_exports_verifies_shows_and_refuses(cli, run_id, tmp_path):
    file = tmp_path / "run.zip"
    said = json.loads(cli("bundle", "export", run_id, str(file), "--json").stdout)
    assert said["run_id"] == run_id
    assert json.loads(cli("bundle", "verify", str(file), "--json", url="sqlite:///none.db").stdout) == said
    assert "who wrote it is not proved" in cli("bundle", "verify", str(file)).stdout
    shown = cli("bundle", "show", str(file), url="sqlite:///none.db").stdout
    assert "go on?" in shown
    assert "charge" in shown
    again = cli("bundle", "export", run_id, str(file))
    assert (again.exit_code, again.stderr.split(":")[0]) == (EXIT_CODES["invalid"], "INVALID_INPUT")
    assert cli("bundle", "export", run_id, str(file), "--overwrite").exit_code == 0
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".zip"] == ["run.zip"]
    assert not list(tmp_path.glob(".run.zip*"))
    changed = bytearray(file.read_bytes())
    changed[500] ^= 1
    file.write_bytes(changed)
    for command in ("verify", "show"):
        refused = cli("bundle", command, str(file))
        assert refused.exit_code == EXIT_CODES["corrupt"]
        assert refused.stderr.startswith("CHECKPOINT_CORRUPT: ")
        assert "offset 500" in refused.stderr


def test_verify_needs_neither_the_application_nor_a_database(data, tmp_path):
    file = tmp_path / "run.zip"
    file.write_bytes(data)
    program = (
        "import builtins, sys\n"
        "from pathlib import Path\n"
        "from runtime_persist.inspector.bundles import verify\n"
        "before = set(sys.modules)\n"
        "sys.addaudithook(lambda event, args: sys.exit(event) if event in "
        "('exec', 'compile', 'sqlite3.connect', 'socket.connect', 'subprocess.Popen', 'import') else None)\n"
        f"verify(Path({str(file)!r}))\n"
        "assert set(sys.modules) == before\n"
        "print('verified')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("verified\n", 0), done.stderr


def test_the_json_schema_describes_the_entries_of_a_real_file(data):
    """Field by field: names, none missing, and the kinds of their values."""
    schema = json.loads((Path(__file__).parents[2] / "docs" / "bundle.schema.json").read_text())
    kinds = {"string": str, "integer": int, "null": type(None), "array": list, "object": dict, "boolean": bool}

    def fits(value, said):
        said = schema["$defs"][said["$ref"].rpartition("/")[2]] if "$ref" in said else said
        if "anyOf" in said:
            return any(fits(value, one) for one in said["anyOf"])
        if "properties" in said:
            return value.keys() == set(said["required"]) and all(
                fits(value[name], one) for name, one in said["properties"].items()
            )
        if "items" in said:
            return all(fits(one, said["items"]) for one in value)
        if "const" in said or "enum" in said:
            return value in said.get("enum", [said.get("const")])
        return type(value) is kinds[said["type"]] and re.search(said.get("pattern", ""), str(value)) is not None

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        manifest = json.loads(archive.read(MANIFEST))
        assert fits(manifest, schema)
        assert not fits({**manifest, "read_us": "1"}, schema)
        rows = {name: archive.read(name).splitlines() for name in archive.namelist() if name.startswith("rows/")}
    assert rows.keys() == schema["x-rows"].keys()
    assert sum(map(len, rows.values())) > len(rows)
    for name, lines in rows.items():
        for line in lines:
            assert fits(json.loads(line), schema["x-rows"][name]), (name, line)
