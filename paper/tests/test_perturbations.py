"""Corrupted evidence: how much of it, that higher levels corrupt more, and what stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.datasets import Dataset, DatasetEntity, DatasetItem
from lpf.domains import (
    GeneratorParameters,
    generate,
    generate_test,
    load_domain,
    perfect_answers,
    preset,
)
from lpf.errors import ConfigError, DatasetError
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, TrainSpec
from lpf.schema import Predicate, Schema
from lpf_paper.perturbations import KINDS, Perturbation, perturbed

LEVELS = ("low", "medium", "high")
FOREIGN = ("The tide was out.", "Two owls sat in the elm.", "Stir until it thickens.")
REPLACING = ("flipped", "noise", "foreign")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def corrupted(dataset: Dataset, kind: str, level: float, seed: int = 1) -> Dataset:
    return perturbed(dataset, kind, level, seed, predicate="level", foreign=FOREIGN)


def made(values: list[tuple[str, int]]) -> Dataset:
    """Entities with these values and so many items, which say whose they are."""
    entities = []
    for number, (value, items) in enumerate(values):
        name = f"C{number}"
        evidence = tuple(
            DatasetItem(
                f"{name}_E{place}",
                f"item {place} of {name} is {value} for Firm{number}",
                source=("press", "bank", None)[place % 3],
                credibility=0.5 + place / 20,
                timestamp=NOON + timedelta(days=place),
                report_id=f"{name}_R" if place < 2 else None,
                truth={"aspect": "money", "symbol": [value], "copy_of": None},
            )
            for place in range(items)
        )
        fields = {"firm": f"Firm{number}", "staff": number}
        truth = {"posterior": dict.fromkeys(LEVELS, 1 / 3)}
        entities.append(
            DatasetEntity(
                name, {"level": value}, evidence, split="test", fields=fields, truth=truth
            )
        )
    return Dataset("made up", Schema((Predicate("level", LEVELS),)), tuple(entities))


def ids(dataset: Dataset) -> list[str]:
    return [item.evidence_id for item in dataset.items]


def new_items(before: Dataset, after: Dataset) -> list[tuple[DatasetEntity, DatasetItem]]:
    old = set(ids(before))
    return [(e, item) for e in after for item in e.evidence if item.evidence_id not in old]


# Ten items that speak for each value at least, so that attacks of every size find theirs.
datasets = st.lists(st.tuples(st.sampled_from(LEVELS), st.integers(1, 5)), max_size=8).map(
    lambda more: made([(value, 10) for value in LEVELS] + more)
)
seeds = st.integers(0, 2**32)
kinds = st.sampled_from(sorted(KINDS))


@st.composite
def kinds_with_levels(draw: st.DrawFn) -> tuple[str, float, float]:
    """A kind and two of its levels, the lower first."""
    kind = draw(kinds)
    of = KINDS[kind]
    level = st.integers(0, int(of.most)) if of.counts else st.floats(0.0, of.most)
    low, high = sorted(draw(st.tuples(level, level)))
    return kind, low, high


@given(datasets, kinds_with_levels(), seeds)
@settings(max_examples=80, deadline=None)
def test_the_same_level_and_seed_give_the_same_data(
    dataset: Dataset, chosen: tuple[str, float, float], seed: int
) -> None:
    kind, _, level = chosen
    assert corrupted(dataset, kind, level, seed) == corrupted(dataset, kind, level, seed)


@given(datasets, kinds_with_levels(), seeds)
@settings(max_examples=150, deadline=None)
def test_entities_and_labels_stay_ids_are_unique_and_an_item_is_left(
    dataset: Dataset, chosen: tuple[str, float, float], seed: int
) -> None:
    kind, _, level = chosen
    after = corrupted(dataset, kind, level, seed)
    assert len(set(ids(after))) == len(ids(after))
    for old, new in zip(dataset, after, strict=True):
        assert new.evidence
        same = new.evidence == old.evidence
        assert replace(new, evidence=old.evidence, truth=old.truth) == old
        assert (new.truth == old.truth) if same else (new.truth is None)
        assert all(item in old.evidence or item.truth is None for item in new.evidence)


@given(datasets, kinds_with_levels(), seeds)
@settings(max_examples=150, deadline=None)
def test_a_higher_level_corrupts_what_a_lower_one_does_and_in_the_same_way(
    dataset: Dataset, chosen: tuple[str, float, float], seed: int
) -> None:
    kind, low, high = chosen
    less, more = corrupted(dataset, kind, low, seed), corrupted(dataset, kind, high, seed)
    if kind == "missing":
        assert set(ids(more)) <= set(ids(less))
    else:
        made_less = {item.evidence_id: item for _, item in new_items(dataset, less)}
        made_more = {item.evidence_id: item for _, item in new_items(dataset, more)}
        assert made_less.items() <= made_more.items()


@given(datasets, st.sampled_from(REPLACING), st.floats(0, 1), seeds)
@settings(max_examples=80, deadline=None)
def test_the_share_of_replaced_items_is_that_of_all_items(
    dataset: Dataset, kind: str, level: float, seed: int
) -> None:
    after = corrupted(dataset, kind, level, seed)
    assert len(ids(after)) == len(ids(dataset))
    assert len(new_items(dataset, after)) == round(level * len(ids(dataset)))


@given(datasets, st.floats(0, 0.9), seeds)
@settings(max_examples=80, deadline=None)
def test_missing_takes_its_share_but_for_last_items(
    dataset: Dataset, level: float, seed: int
) -> None:
    after = corrupted(dataset, "missing", level, seed)
    asked = round(level * len(ids(dataset)))
    gone = len(ids(dataset)) - len(ids(after))
    alone = sum(len(entity.evidence) == 1 for entity in after)
    assert asked - alone <= gone <= asked


@given(datasets, st.floats(0, 1), st.integers(0, 8), st.integers(0, 10), seeds)
@settings(max_examples=60, deadline=None)
def test_what_is_added_is_counted(
    dataset: Dataset, share: float, copies: int, attacks: int, seed: int
) -> None:
    for kind, level, expected in (
        ("contradiction", share, round(share * len(dataset))),
        ("copies", copies, copies * len(dataset)),
        ("adversarial", attacks, attacks * len(dataset)),
    ):
        after = corrupted(dataset, kind, level, seed)
        assert set(ids(dataset)) <= set(ids(after))
        assert len(new_items(dataset, after)) == expected


@given(datasets, kinds, seeds)
@settings(max_examples=40, deadline=None)
def test_ids_stay_unique_if_evidence_is_corrupted_twice(
    dataset: Dataset, kind: str, seed: int
) -> None:
    level = KINDS[kind].levels[-1]
    twice = corrupted(corrupted(dataset, kind, level, seed), kind, level, seed + 1)
    assert len(set(ids(twice))) == len(ids(twice))
    assert len(twice.exclusions) == 2


def test_seeds_differ() -> None:
    dataset = made([(value, 4) for value in LEVELS * 5])
    for kind, of in KINDS.items():
        level = of.levels[0]
        assert corrupted(dataset, kind, level, 1) != corrupted(dataset, kind, level, 2)


MIXED = made([(value, 4) for value in LEVELS * 20])


def test_a_flipped_item_is_of_another_value_and_the_same_source_and_moment() -> None:
    before = {item.evidence_id: item for item in MIXED.items}
    for entity, item in new_items(MIXED, corrupted(MIXED, "flipped", 0.5)):
        original = before[item.evidence_id.removesuffix("~flipped")]
        assert item.labels["level"] != entity.labels["level"]
        assert f"is {item.labels['level']} for" in item.text
        assert item.source == original.source or original.source is None
        assert item.timestamp == original.timestamp
        assert item.report_id is None


def test_where_nobody_has_the_source_the_aspect_decides_and_then_anything() -> None:
    def one(value: str, aspect: str | None, number: int) -> DatasetEntity:
        truth = None if aspect is None else {"aspect": aspect, "symbol": [value]}
        item = DatasetItem(f"E{number}", f"{aspect} {number}", source=f"s{number}", truth=truth)
        return DatasetEntity(f"C{number}", {"level": value}, (item,))

    high = [one("high", aspect, number) for number, aspect in enumerate("abab", start=1)]
    for aspect, expected in (("a", {"a 1", "a 3"}), ("none", {"a 1", "b 2", "a 3", "b 4"})):
        entities = (one("low", aspect, 0), *high)
        dataset = replace(MIXED, entities=entities)
        texts = {
            corrupted(dataset, "flipped", 1.0, seed).entities[0].evidence[0].text
            for seed in range(40)
        }
        assert texts == expected


def test_a_borrowed_text_names_its_borrower() -> None:
    for entity, item in new_items(MIXED, corrupted(MIXED, "contradiction", 1.0)):
        assert item.text.endswith(f"for {entity.fields['firm']}")
        assert f"of {entity.entity_id} is" not in item.text


def test_words_within_other_words_are_not_renamed() -> None:
    """Firm1 lends to Firm0 a text about Firm10."""
    low = MIXED.entities[0]
    text = "Firm1 is not Firm10, says Firm1's bank."
    medium = replace(
        MIXED.entities[1], evidence=(replace(MIXED.entities[1].evidence[0], text=text),)
    )
    after = corrupted(replace(MIXED, entities=(low, medium)), "contradiction", 1.0)
    assert after.entities[0].evidence[-1].text == "Firm0 is not Firm10, says Firm0's bank."


@pytest.mark.parametrize("kind", ["contradiction", "adversarial"])
def test_only_what_speaks_for_the_value_alone_contradicts(kind: str) -> None:
    def open_items(entity: DatasetEntity) -> DatasetEntity:
        first, second, *others = entity.evidence
        assert first.truth is not None
        unclear = replace(first, text="either", truth={**first.truth, "symbol": LEVELS[:2]})
        told = replace(second, text="own label", labels={"level": "low"}, truth=None)
        wrong = [
            replace(one, text="wrong", truth={"symbol": [LEVELS[0]], "aspect": "money"})
            for one in others[:1]
        ]
        return replace(entity, evidence=(unclear, told, *wrong, *others[1:]))

    dataset = replace(MIXED, entities=tuple(map(open_items, MIXED)))
    found = Counter()
    for entity, item in new_items(dataset, corrupted(dataset, kind, 1)):
        found[item.text.split(" is ")[0].split(" of ")[0]] += 1
        assert item.labels["level"] != entity.labels["level"]
        assert item.text != "either"
        if item.text in ("own label", "wrong"):
            assert item.labels["level"] == "low"
    assert found["own label"] > 0
    assert found["item 3"] > 0


def test_an_attack_is_fully_credible_and_the_latest_and_keeps_to_one_value() -> None:
    after = corrupted(MIXED, "adversarial", 3)
    for old, new in zip(MIXED, after, strict=True):
        added = new.evidence[len(old.evidence) :]
        assert {item.credibility for item in added} == {1.0}
        assert {item.timestamp for item in added} == {NOON + timedelta(days=3)}
        assert len({item.labels["level"] for item in added}) == 1
        assert len({item.text for item in added}) == 3


def test_copies_repeat_one_item_in_other_words_and_do_not_say_so() -> None:
    after = corrupted(MIXED, "copies", 8)
    for old, new in zip(MIXED, after, strict=True):
        copies = new.evidence[len(old.evidence) :]
        originals = [item for item in old.evidence if all(item.text in c.text for c in copies)]
        assert len(originals) == 1
        texts = {item.text for item in (*originals, *copies)}
        assert len(texts) == 9
        for copy in copies:
            assert copy.report_id is None
            assert replace(copy, evidence_id="", text="", report_id=None) == replace(
                originals[0], evidence_id="", text="", report_id=None, truth=None
            )


def test_noise_is_words_of_the_data_and_keeps_what_is_not_text() -> None:
    words = {word for item in MIXED.items for word in item.text.split()}
    before = {item.evidence_id: item for item in MIXED.items}
    for _, item in new_items(MIXED, corrupted(MIXED, "noise", 1.0)):
        original = before[item.evidence_id.removesuffix("~noise")]
        assert set(item.text.split()) <= words
        assert len(item.text.split()) == len(original.text.split())
        assert item.text != original.text
        assert (item.source, item.credibility) == (original.source, original.credibility)


def test_foreign_texts_are_those_given() -> None:
    after = corrupted(MIXED, "foreign", 1.0)
    assert {item.text for item in after.items} == set(FOREIGN)


@cache
def compliance() -> Dataset:
    return generate_test(
        load_domain("compliance"), GeneratorParameters(entities=10), seed=3, entities=30
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_perfect_reader_refuses_corrupted_evidence(kind: str) -> None:
    dataset = compliance()
    predicate = next(iter(dataset.schema)).name
    assert perfect_answers(dataset).shape == (30, 3)
    level = KINDS[kind].levels[-1]
    after = perturbed(dataset, kind, level, 1, predicate=predicate, foreign=FOREIGN)
    with pytest.raises(DatasetError, match=r"truth\.posterior"):
        perfect_answers(after)


def test_level_0_changes_nothing() -> None:
    for kind in KINDS:
        assert corrupted(MIXED, kind, 0) is MIXED


def test_the_data_set_notes_the_change() -> None:
    assert corrupted(MIXED, "copies", 2, 7).exclusions == (
        "copies at level 2, seed 7: 60 of 60 entities.",
    )


def test_an_entity_without_evidence_is_left_alone() -> None:
    empty = replace(MIXED.entities[0], evidence=())
    dataset = replace(MIXED, entities=(empty, *MIXED.entities[1:]))
    for kind, of in KINDS.items():
        assert corrupted(dataset, kind, of.most).entities[0] is empty


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        *((kind, -0.1) for kind in KINDS),
        *((kind, float("nan")) for kind in KINDS),
        *((kind, float("inf")) for kind in KINDS),
        ("missing", 0.91),
        ("flipped", 1.1),
        ("copies", 1.5),
        ("copies", 9),
        ("adversarial", 11),
    ],
)
def test_levels_out_of_range_are_refused(kind: str, level: float) -> None:
    with pytest.raises(ConfigError, match="level must be a"):
        corrupted(MIXED, kind, level)


def test_other_arguments_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(ConfigError, match="'typos'"):
        corrupted(MIXED, "typos", 0.1)
    with pytest.raises(ConfigError, match="seed"):
        corrupted(MIXED, "noise", 0.1, -1)
    with pytest.raises(ConfigError, match="no foreign texts"):
        perturbed(MIXED, "foreign", 0.1, 1, predicate="level")


BORROWING = sorted(kind for kind, of in KINDS.items() if of.borrows)


def test_what_borrows_is_known() -> None:
    assert BORROWING == ["adversarial", "contradiction", "flipped"]


@pytest.mark.parametrize("kind", BORROWING)
def test_nothing_is_borrowed_where_it_would_not_speak_for_another_value(kind: str) -> None:
    for dataset, message in (
        (made([("low", 2), ("low", 2)]), "at least two values"),
        (replace(MIXED, entities=(replace(MIXED.entities[0], labels={}), *MIXED)), "None"),
        (replace(MIXED, entities=(replace(MIXED.entities[0], claim="so"), *MIXED)), "claims"),
    ):
        with pytest.raises(DatasetError, match=message):
            corrupted(dataset, kind, 1)


def test_an_attack_needs_as_many_items_as_it_has() -> None:
    with pytest.raises(DatasetError, match="there are 2"):
        corrupted(made([("low", 2), ("high", 2)]), "adversarial", 3)


def test_a_perturbation_is_a_change_of_test_entities() -> None:
    domain = generate(load_domain("compliance"), preset("paper"), seed=1)
    whole = domain.select(domain.positions("test").tolist())
    predicate = "compliance_level"
    after = Perturbation("noise", 0.5).apply(whole, predicate)
    changed = [one.text != other.text for one, other in zip(whole.items, after.items, strict=True)]
    assert sum(changed) == round(0.5 * len(changed))
    assert [entity.labels for entity in whole] == [entity.labels for entity in after]
    assert Perturbation("noise", 0.0).apply(whole, predicate) == whole
    own = {item.text for item in domain.items}
    strange = Perturbation("foreign", 0.7).apply(whole, predicate)
    share = sum(item.text not in own for item in strange.items) / len(list(strange.items))
    assert share == pytest.approx(0.7, abs=0.02)


def test_a_level_has_one_key_however_it_is_written() -> None:
    whole, real = (EvalSpec(change=Perturbation("copies", level)) for level in (4, 4.0))
    train_spec = TrainSpec(DomainData("compliance"))
    assert whole == real
    assert Cell(train_spec, whole, "prior").key == Cell(train_spec, real, "prior").key


def test_an_unknown_perturbation_is_refused() -> None:
    with pytest.raises(ConfigError, match="rust"):
        Perturbation("rust", 0.5).apply(
            generate(load_domain("legal"), preset("paper"), seed=1), "x"
        )
