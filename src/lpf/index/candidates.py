"""Places in a row of ``EvidenceStore.candidates``.

The rows stay tuples: a question reads some of thousands of them, and naming each would cost more
than looking them up.
"""

from __future__ import annotations

ROW_ID, EVIDENCE_ID, CREDIBILITY, TIMESTAMP, SOURCE = range(5)
REPORT_ID, CONTENT_KEY, COMMITMENT, VECTOR = range(5, 9)
