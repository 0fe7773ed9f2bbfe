"""Generated data sets: their properties, and that they do not change."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from lpf.datasets import Dataset, read_dataset, write_dataset
from lpf.domains import (
    PRESETS,
    Domain,
    GeneratorParameters,
    domain_names,
    evidence_model,
    generate,
    generate_test,
    load_domain,
    parse_domain,
    perfect_answers,
    posteriors,
    write_facts,
)
from lpf.domains.generator import REFERENCE
from lpf.domains.wordings import MONTHS
from lpf.errors import ConfigError
from lpf.ingest import read_facts

# Fixed here, so that presets can be tuned.
HARD = GeneratorParameters(
    contradiction=0.10,
    ambiguity=0.10,
    borderline=0.25,
    pull=0.55,
    copies=0.15,
    missing=0.1,
    drift=0.05,
)
PAPER = GeneratorParameters(contradiction=0.13, ambiguity=0.06)
FEW = replace(HARD, entities=60)


@pytest.fixture(scope="module")
def compliance() -> Dataset:
    return generate(load_domain("compliance"), HARD, seed=42)


def wordings_by_split(domain: Domain, dataset: Dataset) -> dict[str, set[str]]:
    """The wordings of each split, with numbers, months and fields removed."""
    found: dict[str, set[str]] = defaultdict(set)
    words = [field.name for field in domain.fields if field.is_text]
    for entity in dataset:
        for item in entity.evidence:
            text = item.text
            for name in words:
                text = text.replace(str(entity.fields[name]), f"[{name}]")
            text = re.sub("|".join(MONTHS), "[month]", text)
            found[str(entity.split)].add(re.sub(r"\d+(\.\d+)?", "#", text))
    return found


def test_sizes_and_shares_match_the_paper(compliance: Dataset) -> None:
    assert Counter(entity.split for entity in compliance) == {
        "train": 630,
        "validation": 135,
        "test": 135,
    }
    assert np.bincount(compliance.labels("compliance_level")).tolist() == [270, 360, 270]
    paper = generate(load_domain("academic"), PAPER, seed=1)
    assert len(list(paper.items)) == 4500
    for split in ("train", "validation", "test"):
        shares = np.bincount(paper.select(paper.positions(split)).labels("approval_likelihood"))
        assert shares / shares.sum() == pytest.approx([0.3, 0.4, 0.3], abs=0.01)


def test_company_has_one_entity_per_year_in_one_split(compliance: Dataset) -> None:
    for start in range(0, 900, 3):
        company = compliance.entities[start : start + 3]
        assert [entity.fields["year"] for entity in company] == [2020, 2021, 2022]
        assert {entity.group_id for entity in company} == {company[0].entity_id}
        for shared in ("company_name", "industry", "country"):
            assert len({entity.fields[shared] for entity in company}) == 1
        assert len({entity.split for entity in company}) == 1
        assert len({entity.fields["audit_score"] for entity in company}) > 1


def test_years_of_a_company_are_correlated(compliance: Dataset) -> None:
    scores = np.array([entity.truth["score"] for entity in compliance]).reshape(300, 3)
    assert 0.25 < np.corrcoef(scores[:, 0], scores[:, 1])[0, 1] < 0.55


def test_other_domains_have_no_groups() -> None:
    made = generate(load_domain("legal"), FEW, seed=1)
    assert {entity.group_id for entity in made} == {None}


@pytest.mark.parametrize("name", domain_names())
def test_fields_correlate_with_the_value_by_weight(name: str) -> None:
    domain = load_domain(name)
    made = generate(domain, replace(PAPER, items=1, entities=1500), seed=3)
    scores = np.array([entity.truth["score"] for entity in made])
    assert [entity.fields[domain.score_field] for entity in made] == [round(s, 3) for s in scores]
    for field in domain.fields:
        if field.is_text:
            continue
        values = np.array([float(entity.fields[field.name]) for entity in made])
        related = np.corrcoef(values, scores)[0, 1]
        if field.weight:
            assert related * np.sign(field.weight) > 0.12, field.name
        else:
            assert abs(related) < 0.1, field.name


def test_records_have_all_fields_in_order(compliance: Dataset) -> None:
    domain = load_domain("compliance")
    entity = compliance.entities[0]
    names = [field.name for field in domain.fields]
    assert list(entity.fields) == [*names, "compliance_score"]
    assert isinstance(entity.fields["past_violations"], int)
    assert isinstance(entity.fields["on_time_filing"], bool)
    assert entity.labels.keys() == {"compliance_level"}


def test_ids_are_numbered_as_in_the_paper() -> None:
    paper = replace(PAPER, entities=40)
    finance = generate(load_domain("finance"), paper, seed=1)
    entity = finance.entities[28]
    ids = [item.evidence_id for item in entity.evidence]
    assert entity.entity_id == "B0029"
    assert ids == [f"B0029_R{number}" for number in range(141, 146)]
    construction = generate(load_domain("construction"), paper, seed=1, prefix="construction-")
    assert construction.entities[0].evidence[0].evidence_id == "construction-C0001_E001"


def test_evidence_is_dated_before_the_reference_date(compliance: Dataset) -> None:
    for entity in compliance:
        end = datetime(entity.fields["year"] + 2, 1, 1, tzinfo=UTC)
        for item in entity.evidence:
            assert end - timedelta(days=731) <= item.timestamp <= end
    undated = generate(load_domain("healthcare"), FEW, seed=1)
    assert max(item.timestamp for item in undated.items) <= REFERENCE


def test_copies_share_a_report_and_differ_in_wording(compliance: Dataset) -> None:
    copies = 0
    for entity in compliance:
        by_id = {item.evidence_id: item for item in entity.evidence}
        for item in entity.evidence:
            original = by_id.get(item.truth["copy_of"])
            if original is not None:
                copies += 1
                assert item.report_id == original.report_id == original.evidence_id
                assert item.text != original.text
                assert (item.source, item.truth["symbol"], item.truth["aspect"]) == (
                    original.source,
                    original.truth["symbol"],
                    original.truth["aspect"],
                )
        reports = Counter(item.report_id for item in entity.evidence if item.report_id)
        assert all(count > 1 for count in reports.values())
    assert copies > 300


def test_texts_are_clean(compliance: Dataset) -> None:
    for item in compliance.items:
        assert not re.search(r"[\[\]{}|]|  | [.,;]", item.text), item.text
        assert item.text[0] == item.text[0].upper()


@pytest.mark.parametrize("unseen", ["wordings", "sentences"])
@pytest.mark.parametrize("name", domain_names())
def test_splits_share_no_wordings(name: str, unseen: str) -> None:
    domain = load_domain(name)
    made = generate(domain, replace(HARD, unseen=unseen), seed=7)
    found = wordings_by_split(domain, made)
    assert not found["train"] & found["test"]
    assert not found["train"] & found["validation"]
    assert not found["validation"] & found["test"]


def test_stored_posteriors_match_the_perfect_reader(compliance: Dataset) -> None:
    """Recomputed from the stored truth of each item."""
    domain = load_domain("compliance")
    model = evidence_model(domain, HARD)
    symbols = {frozenset(shown): number for number, shown in enumerate(domain.symbols)}
    for entity, stored in zip(compliance, perfect_answers(compliance), strict=True):
        end = datetime(entity.fields["year"] + 2, 1, 1, tzinfo=UTC)
        items = entity.evidence
        given = posteriors(
            model,
            np.array([[symbols[frozenset(item.truth["symbol"])] for item in items]]),
            np.array([[item.credibility for item in items]]),
            np.array([[(end - item.timestamp).days for item in items]]),
            np.array([[item.truth["copy_of"] is None for item in items]]),
        )
        assert given[0] == pytest.approx(stored, abs=1e-12)


def test_fact_share_holds_and_facts_help() -> None:
    domain = load_domain("academic")
    made = generate_test(domain, replace(HARD, fact_share=0.5), seed=2, entities=4000)
    known = [entity for entity in made if entity.facts]
    assert len(known) / 4000 == pytest.approx(0.5, abs=0.03)
    for entity in known:
        assert entity.facts == {"panel_recommendation": entity.truth["related"]}
    labels = made.labels("approval_likelihood")
    rows = np.arange(4000)
    without, with_facts_known = perfect_answers(made), perfect_answers(made, with_facts=True)
    assert (
        np.log(with_facts_known[rows, labels]).mean() > np.log(without[rows, labels]).mean() + 0.02
    )
    unknown = [place for place, entity in enumerate(made) if not entity.facts]
    assert without[unknown] == pytest.approx(with_facts_known[unknown])
    for value, row in enumerate(domain.related.table):
        seen = Counter(made.entities[i].truth["related"] for i in np.flatnonzero(labels == value))
        shares = [seen[related] / seen.total() for related in domain.related.values]
        assert shares == pytest.approx(row, abs=0.05)


def test_extra_test_entities_continue_the_ids() -> None:
    domain = load_domain("healthcare")
    plain = generate(domain, FEW, seed=5)
    more = generate(domain, FEW, seed=5, extra_test=40)
    assert more.entities[:60] == plain.entities
    extra = more.entities[60:]
    assert [entity.entity_id for entity in extra] == [f"P{n:04d}" for n in range(61, 101)]
    assert {entity.split for entity in extra} == {"test"}
    counts = Counter(entity.labels["diagnosis_severity"] for entity in extra)
    assert counts == {"mild": 14, "moderate": 16, "severe": 10}
    ids = [item.evidence_id for item in more.items]
    assert [int(one.rpartition("R")[2]) for one in ids] == list(range(1, len(ids) + 1))


def test_entity_does_not_depend_on_the_number_of_entities() -> None:
    """Except for its rank, and so its value."""
    domain = load_domain("materials")
    few = generate(domain, FEW, seed=9)
    many = generate(domain, replace(FEW, entities=90), seed=9)
    for one, other in zip(few, many, strict=False):
        assert {**one.fields, "viability_score": 0} == {**other.fields, "viability_score": 0}
        for item, same in zip(one.evidence, other.evidence, strict=True):
            assert (item.source, item.credibility, item.timestamp) == (
                same.source,
                same.credibility,
                same.timestamp,
            )


def test_generate_test_gives_other_entities() -> None:
    domain = load_domain("legal")
    alone = generate_test(domain, FEW, seed=5, entities=50)
    assert {entity.split for entity in alone} == {"test"}
    assert alone.entities[0].fields != generate(domain, FEW, seed=5).entities[0].fields


def test_shares_can_be_changed() -> None:
    skewed = replace(FEW, entities=200, shares=(0.05, 0.15, 0.8), borderline=0.1)
    made = generate(load_domain("legal"), skewed, seed=1)
    assert np.bincount(made.labels("litigation_outcome")).tolist() == [10, 30, 160]
    assert made.schema["litigation_outcome"].prior == pytest.approx((0.05, 0.15, 0.8))
    with pytest.raises(ConfigError, match=r"generator\.shares: must be 3 numbers"):
        generate(load_domain("legal"), replace(FEW, shares=(0.5, 0.5)), seed=1)


@pytest.mark.parametrize(("seed", "extra", "name"), [(-1, 0, "seed"), (1, -1, "extra_test")])
def test_negative_numbers_are_refused(seed: int, extra: int, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: must be at least 0, got -1"):
        generate(load_domain("legal"), FEW, seed=seed, extra_test=extra)


def test_zero_test_entities_are_refused() -> None:
    with pytest.raises(ConfigError, match="entities: must be at least 1"):
        generate_test(load_domain("legal"), FEW, seed=1, entities=0)


@pytest.mark.parametrize("unseen", ["wordings", "sentences"])
def test_documented_custom_domain_works(unseen: str) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "domains.md").read_text()
    declaration = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert declaration is not None
    domain = parse_domain(declaration[1], "mine.toml")
    made = generate(domain, replace(HARD, entities=200, items=3, unseen=unseen), seed=1)
    assert perfect_answers(made).shape == (200, 2)
    assert Counter(entity.labels["day"] for entity in made) == {"bad": 100, "good": 100}


def test_documented_parameters_match_the_presets() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "domains.md").read_text()
    for name, paper, hard in re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|", page, re.MULTILINE):
        for preset, shown in (("paper", paper), ("hard", hard)):
            value = getattr(PRESETS[preset], name)
            expected = "none" if value is None else value
            assert shown == expected or float(shown) == expected, (name, preset)
    for field in fields(GeneratorParameters):
        assert f"`{field.name}`" in page


def test_generated_data_set_round_trip(compliance: Dataset, tmp_path: Path) -> None:
    write_dataset(tmp_path / "compliance.jsonl", compliance)
    read = read_dataset(tmp_path / "compliance.jsonl", schema=compliance.schema)
    assert read.entities == compliance.entities
    assert read.digest == compliance.digest


def test_known_facts_are_written(compliance: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    count = write_facts(file, load_domain("compliance"), compliance)
    facts = list(read_facts(file))
    assert count == len(facts) == sum(len(entity.facts) for entity in compliance)
    first = next(entity for entity in compliance if entity.facts)
    row = json.loads(file.read_text().splitlines()[0])
    assert row["entity_id"] == first.entity_id
    assert row["timestamp"] == f"{first.fields['year'] + 2}-01-01T00:00:00+00:00"


def test_generated_texts_do_not_change(compliance: Dataset) -> None:
    """Published data sets can be generated again: this hash must not change."""
    assert compliance.digest == generate(load_domain("compliance"), HARD, seed=42).digest
    assert compliance.digest != generate(load_domain("compliance"), HARD, seed=43).digest
    made = generate_test(load_domain("compliance"), HARD, seed=42, entities=20)
    content = [[item.evidence_id, item.text, item.credibility, item.source] for item in made.items]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    assert digest[:16] == "11cb38b0ec44648a"
    assert content[0][1] == (
        "Warnings from the accounting software are suppressed, because, we were told, "
        "they get in the way."
    )
