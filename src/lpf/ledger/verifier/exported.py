"""Read raw records from an export file, checking the form of every line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lpf.errors import InputFileError
from lpf.ledger.formats import EXPORT_FORMAT, HASH_BYTES
from lpf.ledger.verifier.findings import Findings
from lpf.ledger.verifier.sources import RawBlob, RawRecord, RawText, RawTile
from lpf.ledger.verifier.strict import NotStrictError, require_fields, strict_object

_HEADER = {"format", "origin", "public_key"}
_RECORD = {"body", "checkpoint", "leaf", "seq"}
_BLOB = {"blob", "body"}
_END = {"blobs", "records", "sha256"}
# How a header, a record and the last line begin. One of them is among the first lines of an export
# even if another was removed or changed.
_LINE_STARTS = (f'{{"format":"{EXPORT_FORMAT[:-1]}'.encode(), b'{"body":"{', b'{"end":{')
_LINES_LOOKED_AT = 3


class ExportSource:
    """A RecordSource that reads the file once, from the first line to the last. A part (records,
    blobs) ends at the first line of the next one."""

    has_tiles = False

    def __init__(self, path: Path, findings: Findings) -> None:
        self._path = path
        self._findings = findings
        self._digest = hashlib.sha256()
        self._digest_before = ""  # of all lines before the current one
        self._counts = {"records": 0, "blobs": 0}
        self._lines = self._parse()
        self._pushed_back: tuple[str, dict[str, Any]] | None = None

    def identity(self) -> tuple[str, bytes] | None:
        where, line = self._next()
        try:
            require_fields(line, _HEADER)
            if line["format"] != EXPORT_FORMAT or not isinstance(line["origin"], str):
                raise NotStrictError(f"expected a header of format {EXPORT_FORMAT!r}")
            return line["origin"], _hash(line, "public_key")
        except NotStrictError as error:
            self._findings.add(where, str(error))
            return None

    def texts(self) -> Iterator[RawText]:
        return iter(())  # texts can be erased, so they are not exported

    def records(self) -> Iterator[RawRecord]:
        for where, line in self._part("seq"):
            try:
                yield _record(where, line)
                self._counts["records"] += 1
            except NotStrictError as error:
                self._findings.add(where, str(error))

    def tiles(self) -> Iterator[RawTile]:
        return iter(())

    def last_number(self) -> int:
        return self._counts["records"]

    def blobs(self) -> Iterator[RawBlob]:
        for where, line in self._part("blob"):
            try:
                require_fields(line, _BLOB)
                yield RawBlob(where, _hash(line, "blob"), _text(line, "body"))
                self._counts["blobs"] += 1
            except NotStrictError as error:
                self._findings.add(where, str(error))
        self._check_end()

    def _part(self, mark: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The next lines that have the field ``mark``."""
        while (pair := self._next())[1].keys() & {mark}:
            yield pair
        self._pushed_back = pair

    def _next(self) -> tuple[str, dict[str, Any]]:
        pair, self._pushed_back = self._pushed_back, None
        return pair or next(self._lines, ("end of file", {}))

    def _check_end(self) -> None:
        digest = self._digest_before
        where, line = self._next()
        try:
            require_fields(line, {"end"})
            end = line["end"]
            if not isinstance(end, dict):
                raise NotStrictError(f"expected counts and digest, found {end!r}")
            require_fields(end, _END)
        except NotStrictError as error:
            self._findings.add(where, f"the last line is missing or wrong: {error}")
            return
        for name, count in self._counts.items():
            self._findings.expect(where, name, count, end[name])
        self._findings.expect(where, "sha256", digest, end["sha256"])
        where, _ = self._next()
        if where != "end of file":
            self._findings.add(where, "expected nothing after the last line")

    def _require_export(self, beginning: bytes) -> None:
        """InputFileError if the file is not an export: then it says nothing about a ledger."""
        lines = beginning.split(b"\n")[:_LINES_LOOKED_AT]
        if not any(line.startswith(_LINE_STARTS) for line in lines):
            raise InputFileError(
                f"{self._path} is not an export of a ledger. Nothing was verified; give a file "
                "that 'lpf ledger export' wrote."
            )

    def _parse(self) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            with self._path.open("rb") as file:
                self._require_export(file.peek())
                for number, raw in enumerate(file, 1):
                    where = f"{self._path.name}, line {number}"
                    self._digest_before = self._digest.hexdigest()
                    self._digest.update(raw)
                    try:
                        yield where, _object(raw)
                    except NotStrictError as error:
                        self._findings.add(where, str(error))
        except OSError as error:
            raise InputFileError(f"{self._path} cannot be read ({error.strerror}).") from error


def _object(raw: bytes) -> dict[str, Any]:
    if not raw.endswith(b"\n"):
        raise NotStrictError("the line has no line end; the file is truncated")
    return strict_object(raw[:-1])


def _record(where: str, line: dict[str, Any]) -> RawRecord:
    require_fields(line, _RECORD)
    if type(line["seq"]) is not int:
        raise NotStrictError(f"seq: expected a whole number, found {line['seq']!r}")
    checkpoint = None if line["checkpoint"] is None else _text(line, "checkpoint")
    name = f"INF{line['seq']:08d} ({where})"
    return RawRecord(name, line["seq"], _hash(line, "leaf"), _text(line, "body"), checkpoint)


def _text(line: dict[str, Any], name: str) -> bytes:
    if not isinstance(line[name], str):
        raise NotStrictError(f"{name}: expected a string, found {line[name]!r}")
    return str(line[name]).encode()


def _hash(line: dict[str, Any], name: str) -> bytes:
    """Only lower-case digits are accepted, so that a hash has a single form."""
    try:
        value = bytes.fromhex(line[name])
    except (ValueError, TypeError):
        value = b""
    if len(value) != HASH_BYTES or value.hex() != line[name]:
        raise NotStrictError(f"{name}: expected 64 hexadecimal digits, found {line[name]!r}")
    return value
