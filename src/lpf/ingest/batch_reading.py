"""Features of the rows of one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lpf.errors import EvidenceError
from lpf.ingest.drafts import Draft
from lpf.reading.reader import Features, Reader, ReadRequest
from lpf.types import Float32Array


class BatchReading:
    """Reads every text once, however often its batch is settled anew: reading takes far longer
    than settling, and meanwhile others add."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._features: dict[bytes, Float32Array] = {}
        self._unreadable: dict[bytes, str] = {}

    def read(
        self, drafts: Sequence[Draft]
    ) -> tuple[list[Draft], Features, list[tuple[Draft, str]]]:
        """What can be read, its features [N, width], and what cannot, with the reason."""
        known = self._features.keys() | self._unreadable.keys()
        fresh = {draft.content_hash: draft for draft in drafts if draft.content_hash not in known}
        self._read(list(fresh.values()))
        readable = [draft for draft in drafts if draft.content_hash in self._features]
        reasons = self._unreadable
        unreadable = [(d, reasons[d.content_hash]) for d in drafts if d.content_hash in reasons]
        features = np.empty((len(readable), self._reader.width), np.float32)
        for number, draft in enumerate(readable):
            features[number] = self._features[draft.content_hash]
        return readable, features, unreadable

    def _read(self, drafts: Sequence[Draft]) -> None:
        if not drafts:
            return
        requests = [ReadRequest(d.evidence.text_content, d.evidence.claim) for d in drafts]
        try:
            features = self._reader.read_many(requests)
        except EvidenceError as error:
            if len(drafts) == 1:
                self._unreadable[drafts[0].content_hash] = str(error)
                return
            # Halving finds the few that cannot be read without reading all the others singly.
            middle = len(drafts) // 2
            self._read(drafts[:middle])
            self._read(drafts[middle:])
        else:
            hashes = [draft.content_hash for draft in drafts]
            self._features.update(zip(hashes, features, strict=True))
