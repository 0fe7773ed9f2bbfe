"""What a verification says: where, and what was expected and found."""

from __future__ import annotations

from dataclasses import dataclass

from lpf.errors import LedgerBrokenError


@dataclass(frozen=True, slots=True)
class Finding:
    """``where``: a record id, a line of an export, a field."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class EnoughFound(Exception):  # noqa: N818  (not an error: the search has reached its limit)
    """As many findings as were asked for."""


class Findings:
    """Collects up to ``limit`` findings."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[Finding] = []

    def add(self, where: str, what: str) -> None:
        self._found.append(Finding(where, what))
        if len(self._found) >= self._limit:
            raise EnoughFound

    def expect(self, where: str, name: str, expected: object, found: object) -> bool:
        """Whether they are equal; a finding if not. To Python True is 1, to a reader it is not."""
        if type(found) is type(expected) and found == expected:
            return True
        self.add(where, f"{name}: expected {_shown(expected)}, found {_shown(found)}")
        return False

    def all(self) -> tuple[Finding, ...]:
        return tuple(self._found)


@dataclass(frozen=True, slots=True)
class Verification:
    """``unsigned_tail``: how many records no checkpoint covers yet; ``root``: that of all records,
    32 bytes. Both count what was looked at before the search for findings ended."""

    records: int
    checkpoints: int
    unsigned_tail: int
    root: bytes
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings

    def require_ok(self) -> None:
        """LedgerBrokenError with the findings, where there are any."""
        if self.findings:
            texts = tuple(map(str, self.findings))
            raise LedgerBrokenError(
                f"the ledger does not hold: {len(texts)} findings, the first is {texts[0]}.", texts
            )


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)
