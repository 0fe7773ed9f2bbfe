"""What a verification says: where, and what was expected and found."""

from __future__ import annotations

from collections import Counter
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
        self._first: dict[tuple[str, str], int] = {}  # place of each series' first finding
        self._later: Counter[tuple[str, str]] = Counter()

    def add(self, where: str, what: str) -> None:
        self._found.append(Finding(where, what))
        if len(self._found) >= self._limit:
            raise EnoughFound

    def add_each(self, noun: str, name: str, where: str, what: str) -> None:
        """For what one change brings about in many places: the first ``noun`` whose ``name`` is
        wrong is told, later ones are counted with it."""
        if (noun, name) in self._first:
            self._later[noun, name] += 1
        else:
            self._first[noun, name] = len(self._found)
            self.add(where, what)

    def expect(self, where: str, name: str, expected: object, found: object) -> bool:
        """Whether they are equal; a finding if not. To Python True is 1, to a reader it is not."""
        if _same(expected, found):
            return True
        self.add(where, _difference(name, expected, found))
        return False

    def expect_each(
        self, noun: str, where: str, name: str, expected: object, found: object
    ) -> bool:
        """As ``expect``, told as ``add_each`` does."""
        if _same(expected, found):
            return True
        self.add_each(noun, name, where, _difference(name, expected, found))
        return False

    def all(self) -> tuple[Finding, ...]:
        told = list(self._found)
        for (noun, name), count in self._later.items():
            place = self._first[noun, name]
            more = f"{told[place].what}; and {count} later {noun}{'s' if count > 1 else ''}"
            told[place] = Finding(told[place].where, more)
        return tuple(told)


@dataclass(frozen=True, slots=True)
class Verification:
    """``unsigned_tail``: how many records no checkpoint covers yet; ``root``: that of all records,
    32 bytes. Both count what was looked at before the search for findings ended. ``keyed`` and
    ``trusted``: whether a public key and a checkpoint from elsewhere were given."""

    records: int
    checkpoints: int
    unsigned_tail: int
    root: bytes
    findings: tuple[Finding, ...]
    keyed: bool = False
    trusted: bool = False

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def against(self) -> str:
        """With what the ledger was compared. "itself": whoever can write the store and has the
        signing key could have made all of it anew."""
        given = [(self.trusted, "a trusted checkpoint"), (self.keyed, "the given key")]
        return " and ".join(name for was_given, name in given if was_given) or "itself"

    def require_ok(self) -> None:
        """LedgerBrokenError with the findings, where there are any."""
        if self.findings:
            texts = tuple(map(str, self.findings))
            count = f"{len(texts)} findings, the first is" if len(texts) > 1 else "one finding,"
            raise LedgerBrokenError(f"the ledger does not hold: {count} {texts[0]}.", texts)


def _same(expected: object, found: object) -> bool:
    return type(found) is type(expected) and found == expected


def _difference(name: str, expected: object, found: object) -> str:
    return f"{name}: expected {_shown(expected)}, found {_shown(found)}"


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)
