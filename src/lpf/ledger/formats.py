"""The names of what the ledger writes, and nothing else: all that writer and verifier share."""

from __future__ import annotations

RECORD_FORMAT = "lpf-record/1"
CHECKPOINT_FORMAT = "lpf-checkpoint/1"
EXPORT_FORMAT = "lpf-ledger/1"
INCLUSION_FORMAT = "lpf-inclusion/1"
CONSISTENCY_FORMAT = "lpf-consistency/1"

QUERY_TEXT_FIELD = "query_text"  # where a record holds the commitment to the words it was asked in

HASH_BYTES = 32
TILE_WIDTH = 256  # hashes a tile holds; a tile of level n has the roots of 256 tiles of level n-1
TILE_HEIGHT = 8  # 2 ** 8 == 256
