"""Any data set can be written and read back."""

from __future__ import annotations

import tempfile
from datetime import UTC, timedelta, timezone
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from labelled_data import LEVELS, SCHEMA, TWO

from lpf.datasets import SPLITS, Dataset, DatasetEntity, DatasetItem, read_dataset, write_dataset

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).filter(
    str.strip
)
names = texts.map(str.strip)
optional = st.none() | names
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
tables = st.dictionaries(names, plain, max_size=2)
zones = st.just(UTC) | st.integers(-720, 720).map(lambda m: timezone(timedelta(minutes=m)))
some_level = st.sampled_from(LEVELS)
some_outcome = st.sampled_from(("clean", "qualified"))


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    several = draw(st.booleans())
    labels = st.fixed_dictionaries(
        {"level": some_level}, optional={"outcome": some_outcome} if several else {}
    )
    own = st.fixed_dictionaries({}, optional={"level": some_level})
    entity_ids = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    evidence_ids = iter(draw(st.lists(names, min_size=8, max_size=8, unique=True)))
    entities = []
    for entity_id in entity_ids:
        evidence = tuple(
            DatasetItem(
                next(evidence_ids),
                draw(texts),
                draw(own),
                draw(optional),
                draw(st.none() | st.floats(0, 1)),
                draw(st.none() | st.datetimes(timezones=zones).filter(lambda m: 2 < m.year < 9998)),
                draw(optional),
                draw(st.none() | tables),
            )
            for _ in range(draw(st.integers(1, 2)))
        )
        entities.append(
            DatasetEntity(
                entity_id,
                draw(labels),
                evidence,
                claim=draw(st.none() | texts),
                split=draw(st.sampled_from([None, *SPLITS])),
                group_id=draw(optional),
                facts=draw(own),
                fields=draw(tables),
                truth=draw(st.none() | tables),
            )
        )
    return Dataset(draw(names), TWO if several else SCHEMA, tuple(entities))


@given(datasets())
def test_round_trip(data: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.jsonl"
        write_dataset(path, data)
        assert [file.name for file in path.parent.iterdir()] == ["data.jsonl"]
        again = read_dataset(path, schema=data.schema, name=data.name)
        assert again == data
        assert again.digest == data.digest
        assert again.exclusions == ()
        assert path.read_bytes().count(b"\n") == len(data)
