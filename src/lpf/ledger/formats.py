"""Format names and sizes: the only code that the writer and the verifier share."""

from __future__ import annotations

RECORD_FORMAT = "lpf-record/1"
CHECKPOINT_FORMAT = "lpf-checkpoint/1"
EXPORT_FORMAT = "lpf-ledger/1"
INCLUSION_FORMAT = "lpf-inclusion/1"
CONSISTENCY_FORMAT = "lpf-consistency/1"
DISCLOSURE_FORMAT = "lpf-disclosure/1"

QUERY_TEXT_FIELD = "query_text"  # field of a record with the salted hash of the question's text
COMMENT_FIELD = "comment"  # that of a reviewer's comment
TEXT_FIELDS = (COMMENT_FIELD, QUERY_TEXT_FIELD)  # a record has at most one of them

HASH_BYTES = 32
TILE_WIDTH = 256  # hashes per tile; a tile of level n has the roots of 256 tiles of level n-1
TILE_HEIGHT = 8  # 2 ** 8 == 256
