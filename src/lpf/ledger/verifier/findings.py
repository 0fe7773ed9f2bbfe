"""The result of a verification: findings with their place, and what was expected and found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lpf.errors import LedgerBrokenError


@dataclass(frozen=True, slots=True)
class Finding:
    """``where`` is a record ID, a line of an export, or another part of the ledger."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class FindingLimitReached(Exception):  # noqa: N818  (not an error, but the end of the search)
    """The limit of findings is reached."""


class Findings:
    """Collects up to ``limit`` findings."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._findings: list[Finding] = []
        # For add_each, by (noun, name): position of the first finding, and number of later ones.
        self._first: dict[tuple[str, str], int] = {}
        self._later: Counter[tuple[str, str]] = Counter()

    def add(self, where: str, what: str) -> None:
        """Raises FindingLimitReached if this was the last finding within the limit."""
        self._findings.append(Finding(where, what))
        if len(self._findings) >= self._limit:
            raise FindingLimitReached

    def add_each(self, noun: str, name: str, where: str, what: str) -> None:
        """For a problem that one change causes in many places: the first ``noun`` with a wrong
        ``name`` is a finding, later ones are only counted."""
        if (noun, name) in self._first:
            self._later[noun, name] += 1
        else:
            self._first[noun, name] = len(self._findings)
            self.add(where, what)

    def expect(self, where: str, name: str, expected: object, found: object) -> bool:
        """Add a finding unless both are equal and of the same type (in Python, True == 1). Return
        True if they are equal."""
        if _same(expected, found):
            return True
        self.add(where, _difference(name, expected, found))
        return False

    def expect_each(
        self, noun: str, where: str, name: str, expected: object, found: object
    ) -> bool:
        """Like ``expect``, but with ``add_each``."""
        if _same(expected, found):
            return True
        self.add_each(noun, name, where, _difference(name, expected, found))
        return False

    def all(self) -> tuple[Finding, ...]:
        """All findings, with the counts of ``add_each``."""
        findings = list(self._findings)
        for (noun, name), count in self._later.items():
            first = findings[self._first[noun, name]]
            what = f"{first.what}; and {count} later {noun}{'s' if count > 1 else ''}"
            findings[self._first[noun, name]] = Finding(first.where, what)
        return tuple(findings)


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of ``verify``.

    ``unsigned_tail`` is the number of records that no checkpoint covers yet; ``root`` is the root
    hash of all records (32 bytes). Both refer to what was read before the limit of findings was
    reached. ``keyed`` and ``trusted`` say if a public key and a trusted checkpoint were given.
    """

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
        """What the ledger was compared with. If only with "itself", anyone with the signing key
        and write access to the store could have rewritten all of it."""
        given = [(self.trusted, "a trusted checkpoint"), (self.keyed, "the given key")]
        return " and ".join(name for was_given, name in given if was_given) or "itself"

    def require_ok(self) -> None:
        """Raise LedgerBrokenError if there are findings."""
        if self.findings:
            texts = tuple(map(str, self.findings))
            count = f"{len(texts)} findings, the first is" if len(texts) > 1 else "one finding,"
            raise LedgerBrokenError(f"the ledger is not valid: {count} {texts[0]}.", texts)


def _same(expected: object, found: object) -> bool:
    return type(found) is type(expected) and found == expected


def _difference(name: str, expected: object, found: object) -> str:
    return f"{name}: expected {_shown(expected)}, found {_shown(found)}"


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)
