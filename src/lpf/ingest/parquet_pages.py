"""Measure the pages of a Parquet file from their headers, before any of them is unpacked.

The metadata at the end of a file may claim any size; what a reader allocates is what each page
header says. Headers are structs of Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_WINDOW = 64 * 1024
_LONGEST_HEADER = 16 * 1024 * 1024  # it holds the smallest and the largest value of the page
_UNPACKED, _PACKED = 2, 3  # fields of a page header
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    10,
    11,
    12,
)
_INTEGERS = (4, 5, 6)
_DEEPEST = 8


class PageError(ValueError):
    """A page header is damaged."""


def page_sizes(path: Path, metadata: Any) -> Iterator[int]:
    """The unpacked size of every page. PageError if a header is damaged."""
    with path.open("rb") as file:
        for group in range(metadata.num_row_groups):
            for place in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(place)
                offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
                start = min(offset for offset in offsets if offset is not None)
                yield from _chunk_sizes(file, start, start + chunk.total_compressed_size)


def _chunk_sizes(file: BinaryIO, start: int, end: int) -> Iterator[int]:
    while start < end:
        header = _header(file, start)
        unpacked, packed = header.sizes
        if packed < 0 or unpacked < 0:
            raise PageError(f"the page at byte {start} has a negative size")
        yield unpacked
        start += header.length + packed


def _header(file: BinaryIO, start: int) -> _PageHeader:
    window = _WINDOW
    while True:
        file.seek(start)
        content = file.read(window)
        try:
            return _PageHeader(content)
        except IndexError:
            if len(content) < window or window >= _LONGEST_HEADER:
                raise PageError(f"the page header at byte {start} is damaged") from None
            window *= 16


class _PageHeader:
    """A page header at the beginning of ``content``. IndexError if it is not complete."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0
        self._values: dict[int, int] = {}
        self._struct(0, self._values)
        self.length = self._place

    @property
    def sizes(self) -> tuple[int, int]:
        """Unpacked and packed."""
        try:
            return self._values[_UNPACKED], self._values[_PACKED]
        except KeyError:
            raise PageError("a page header has no sizes") from None

    def _struct(self, depth: int, values: dict[int, int] | None = None) -> None:
        if depth > _DEEPEST:
            raise PageError("a page header is nested too deeply")
        field = 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == _STOP:
                return
            field = field + (head >> 4) if head >> 4 else self._integer()
            if kind in _INTEGERS:
                value = self._integer()
                if values is not None:
                    values[field] = value
            else:
                self._skip(kind, depth, in_struct=True)

    def _skip(self, kind: int, depth: int, in_struct: bool = False) -> None:
        if kind in (_TRUE, _FALSE):
            self._place += 0 if in_struct else 1
        elif kind == _BYTE:
            self._place += 1
        elif kind in _INTEGERS:
            self._varint()
        elif kind == _DOUBLE:
            self._place += 8
        elif kind == _BINARY:
            length = self._varint()
            self._place += length
        elif kind in (_LIST, _SET):
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            self._skip_many(count, (head & 15,), depth)
        elif kind == _MAP:
            count = self._varint()
            if count:
                kinds = self._byte()
                self._skip_many(count, (kinds >> 4, kinds & 15), depth)
        elif kind == _STRUCT:
            self._struct(depth + 1)
        else:
            raise PageError("a page header has an unknown type")

    def _skip_many(self, count: int, kinds: tuple[int, ...], depth: int) -> None:
        if depth > _DEEPEST:
            raise PageError("a page header is nested too deeply")
        for _ in range(count):
            if self._place >= len(self._content):
                raise IndexError
            for kind in kinds:
                self._skip(kind, depth + 1)

    def _byte(self) -> int:
        value = self._content[self._place]
        self._place += 1
        return value

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7
            if shift > 63:
                raise PageError("a page header has a number that is too long")

    def _integer(self) -> int:
        """Signed numbers are stored with their sign in the lowest bit."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
