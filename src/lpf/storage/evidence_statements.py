"""The statements of the evidence store, each written once for both databases."""

from __future__ import annotations

from functools import cache

from sqlalchemy import (
    SmallInteger,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
)

from lpf.storage.evidence_rows import COLUMNS
from lpf.storage.keyed import KEYS, any_of
from lpf.storage.statements import Prepared
from lpf.storage.tables import (
    counters,
    erased_evidence,
    evidence,
    evidence_version,
    features,
    readers,
)

VECTOR_COLUMNS = ("row_id", "reader", "vector")

CANDIDATES = Prepared(
    select(
        evidence.c.row_id,
        evidence.c.evidence_id,
        evidence.c.credibility,
        evidence.c.timestamp,
        evidence.c.source,
        evidence.c.report_id,
        evidence.c.content_key,
        evidence.c.commitment,
        features.c.vector,
    )
    .select_from(evidence)
    .outerjoin(
        features,
        and_(
            features.c.row_id == evidence.c.row_id,
            features.c.reader == bindparam("reader", type_=SmallInteger),
        ),
    )
    .where(
        evidence.c.entity_id == bindparam("entity_id"),
        evidence.c.predicate == bindparam("predicate"),
    )
    .order_by(evidence.c.row_id),
    "reader",
    "entity_id",
    "predicate",
)

BY_IDS = Prepared(select(evidence).where(any_of(evidence.c.evidence_id)), *KEYS)
BY_ROWS = Prepared(select(evidence).where(any_of(evidence.c.row_id)), *KEYS)
HASHES_BY_IDS = Prepared(
    select(evidence.c.evidence_id, evidence.c.content_hash).where(any_of(evidence.c.evidence_id)),
    *KEYS,
)
IDS_BY_ENTITIES = Prepared(
    select(evidence.c.entity_id, evidence.c.evidence_id).where(any_of(evidence.c.entity_id)), *KEYS
)
BY_CONTENT = Prepared(select(evidence.c.content_hash).where(any_of(evidence.c.content_hash)), *KEYS)
ERASED_BY_IDS = Prepared(
    select(erased_evidence.c.evidence_id, erased_evidence.c.erased_at).where(
        any_of(erased_evidence.c.evidence_id)
    ),
    *KEYS,
)
INSERT = Prepared(insert(evidence).values({name: bindparam(name) for name in COLUMNS}), *COLUMNS)
DELETE = Prepared(delete(evidence).where(evidence.c.row_id == bindparam("row")), "row")
DELETE_FEATURES = Prepared(delete(features).where(features.c.row_id == bindparam("row")), "row")
READER = Prepared(
    select(readers.c.reader, readers.c.width).where(readers.c.reader_id == bindparam("reader_id")),
    "reader_id",
)
READER_WIDTH = Prepared(
    select(readers.c.width).where(readers.c.reader == bindparam("reader")), "reader"
)
ADD_READER = Prepared(
    insert(readers).values(
        reader=bindparam("reader"), reader_id=bindparam("reader_id"), width=bindparam("width")
    ),
    "reader",
    "reader_id",
    "width",
)
READERS_OF_ROW = Prepared(
    select(features.c.reader).where(features.c.row_id == bindparam("row")), "row"
)
PUT_VECTOR = Prepared(
    insert(features).values({name: bindparam(name) for name in VECTOR_COLUMNS}), *VECTOR_COLUMNS
)
VECTORS = Prepared(
    select(features.c.row_id, features.c.vector)
    .where(features.c.reader == bindparam("reader"), features.c.row_id > bindparam("after_row"))
    .order_by(features.c.row_id),
    "reader",
    "after_row",
)
_OF_READER = features.c.reader == bindparam("reader")
# The number of vectors is a counter: to count rows that are as long as these takes its time.
STATE = Prepared(
    select(
        select(counters.c.value).where(counters.c.name == bindparam("counter")).scalar_subquery(),
        select(features.c.row_id)
        .where(_OF_READER)
        .order_by(features.c.row_id.desc())
        .limit(literal_column("1"))
        .scalar_subquery(),
        select(func.count()).select_from(erased_evidence).scalar_subquery(),
    ),
    "counter",
    "reader",
)
COUNT = Prepared(select(func.count()).select_from(evidence))
VERSION = Prepared(select(evidence_version.c.version))
_WITHOUT_VECTOR = ~exists().where(features.c.row_id == evidence.c.row_id, _OF_READER)
MISSING = Prepared(
    select(evidence)
    .where(_WITHOUT_VECTOR, evidence.c.row_id > bindparam("after_row"))
    .order_by(evidence.c.row_id)
    .limit(bindparam("limit")),
    "reader",
    "after_row",
    "limit",
)

ROWS_WITHOUT_VECTOR = Prepared(
    select(evidence.c.row_id).where(any_of(evidence.c.row_id), _WITHOUT_VECTOR), *KEYS, "reader"
)


@cache
def listing(*columns: str) -> Prepared:
    """Rows after one, in order, that have the given values in ``columns``."""
    same = [evidence.c[name] == bindparam(name) for name in columns]
    statement = select(evidence).where(evidence.c.row_id > bindparam("after_row"), *same)
    ordered = statement.order_by(evidence.c.row_id).limit(bindparam("limit"))
    return Prepared(ordered, *columns, "after_row", "limit")
