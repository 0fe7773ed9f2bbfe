"""Test entities that share nothing with training entities."""

from __future__ import annotations

from lpf.datasets import Dataset, DatasetEntity, DatasetItem, Split
from lpf.evaluation.data_checks import unshared
from lpf.schema import Predicate, Schema

SCHEMA = Schema((Predicate("label", ("no", "yes")),))


def an_entity(
    name: str,
    split: Split,
    *texts: str,
    claim: str | None = None,
    group: str | None = None,
) -> DatasetEntity:
    items = tuple(DatasetItem(f"{name}-{place}", text) for place, text in enumerate(texts))
    return DatasetEntity(name, {"label": "yes"}, items, claim=claim, split=split, group_id=group)


def found(*entities: DatasetEntity) -> tuple[str, ...]:
    return unshared(Dataset("made", SCHEMA, entities))


LEARNED = (
    an_entity("l1", "train", "It rained.", claim="Was it wet?", group="g1"),
    an_entity("l2", "validation", "It snowed."),
)


def test_nothing_in_common() -> None:
    asked = an_entity("t", "test", "It shone.", claim="Was it dry?", group="g2")
    assert found(*LEARNED, asked) == ("t",)


def test_a_text_a_claim_or_a_group_in_common() -> None:
    assert found(*LEARNED, an_entity("t", "test", "It shone.", "It rained.")) == ()
    assert found(*LEARNED, an_entity("t", "test", "It snowed.")) == ()
    assert found(*LEARNED, an_entity("t", "test", "It shone.", claim="Was it wet?")) == ()
    assert found(*LEARNED, an_entity("t", "test", "It shone.", group="g1")) == ()


def test_case_and_blanks_make_no_difference() -> None:
    assert found(*LEARNED, an_entity("t", "test", "  it RAINED. ")) == ()


def test_a_claim_that_is_a_text_elsewhere_is_shared() -> None:
    assert found(*LEARNED, an_entity("t", "test", "It shone.", claim="It rained.")) == ()


def test_test_entities_may_share_with_each_other() -> None:
    asked = [an_entity(name, "test", "It shone.", group="g2") for name in ("t1", "t2")]
    assert found(*LEARNED, *asked) == ("t1", "t2")


def test_a_group_equal_to_a_text_is_not_shared() -> None:
    assert found(*LEARNED, an_entity("t", "test", "g1", group="It rained.")) == ("t",)
