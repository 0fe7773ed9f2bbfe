"""Rows that were not taken, kept beside the store until somebody mends them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO

from lpf.ingest.problems import Problem

ENDING = ".rejects.jsonl"
UNFINISHED = ".part"


class RejectsFile:
    """Made when the first row is rejected. It has its name once it is complete; what an
    interruption leaves is complete as far as it goes."""

    def __init__(self, folder: str | Path, source: str) -> None:
        self._folder = Path(folder)
        self._source = source
        self._file: IO[str] | None = None
        self._path: Path | None = None

    def write(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            if self._file is None:
                self._file = self._opened()
            self._file.write(problem.as_json() + "\n")
        if self._file is not None:
            self._file.flush()

    def close(self) -> Path | None:
        """Where the rejects are; None if there are none."""
        if self._file is not None and self._path is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            Path(self._file.name).replace(self._path)
            self._file = None
        return self._path

    def _opened(self) -> IO[str]:
        """A name that no other run has: one of them is the first to make the file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        for number in count(1):
            ending = "" if number == 1 else f"-{number}"
            path = self._folder / f"{self._source}.{moment}{ending}{ENDING}"
            unfinished = path.with_name(path.name + UNFINISHED)
            try:
                if not path.exists():
                    # Half a character, which UTF-8 has no bytes for, becomes JSON's escape of it.
                    file = unfinished.open("x", encoding="utf-8", errors="backslashreplace")
                    self._path = path
                    return file
            except FileExistsError:
                continue
        raise AssertionError("numbers do not end")


def rejects_in(folder: str | Path) -> list[Path]:
    """All files of rejects, also what a killed process left unfinished."""
    return sorted(Path(folder).glob(f"*{ENDING}*"))
