"""Query texts: each must be what a record commits to. One that is missing may have been erased."""

from __future__ import annotations

import hashlib
from typing import Any

from lpf.ledger.formats import QUERY_TEXT_FIELD
from lpf.ledger.verifier.findings import Findings
from lpf.ledger.verifier.sources import Source


class TextCheck:
    """Read before the records, so that each text's record is among those; keeps 32 bytes a text
    until then."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._unclaimed: set[bytes] = set()

    def read(self, source: Source) -> None:
        for text in source.texts():
            committed = hashlib.sha256(text.salt + text.words).digest()
            self._findings.expect(text.where, "commitment", committed, text.commitment)
            self._unclaimed.add(text.commitment)

    def claim(self, fields: dict[str, Any]) -> None:
        """The fields of one record."""
        named = fields.get(QUERY_TEXT_FIELD)
        if self._unclaimed and isinstance(named, str):
            try:
                self._unclaimed.discard(bytes.fromhex(named))
            except ValueError:
                return  # not a commitment; records may hold what they like

    def finish(self) -> None:
        for commitment in self._unclaimed:
            self._findings.add(f"query text {commitment.hex()}", "no record refers to it")
