"""The seven declarations, and what the loader refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_domain import SMALL

from lpf.domains import Domain, domain_names, load_domain, parse_domain
from lpf.errors import DatasetError

SEVEN = (
    "academic",
    "compliance",
    "construction",
    "finance",
    "healthcare",
    "legal",
    "materials",
)
COMMON = {"not", "the", "of", "as", "in", "no"}


def label_words(domain: Domain) -> re.Pattern[str]:
    """Matches the values of both predicates, in any form."""
    values = (*domain.values, *domain.related.values)
    words = {word for value in values for word in value.lower().split("_")} - COMMON
    stems = {word[:-1] if word.endswith("e") and len(word) > 4 else word for word in words}
    return re.compile(rf"\b({'|'.join(map(re.escape, sorted(stems)))})\w{{0,5}}\b", re.IGNORECASE)


def test_package_has_seven_domains() -> None:
    assert domain_names() == SEVEN


@pytest.mark.parametrize("name", SEVEN)
class TestDeclaration:
    def test_has_enough_fields_and_sentences(self, name: str) -> None:
        domain = load_domain(name)
        assert domain.name == name
        assert len(domain.aspects) == 6
        assert sum(1 for field in domain.fields if field.weight) >= 3
        for aspect in domain.aspects:
            assert len(aspect.sources) >= 3
            assert [len(cell.sentences) for cell in aspect.cells] == [22, 22, 22, 10, 10]
            for cell, least in zip(aspect.cells, (300, 300, 300, 100, 100), strict=True):
                assert cell.wordings >= least, cell.place

    def test_texts_do_not_name_a_value(self, name: str) -> None:
        domain = load_domain(name)
        forbidden = label_words(domain)
        for cell in domain.cells:
            for sentence in cell.sentences:
                words = re.sub(r"\[[^\]]*\]", "X", re.sub(r"[{}|]", " ", sentence.line))
                assert not forbidden.search(words), (cell.place, sentence.line)

    def test_every_wording_is_a_clean_sentence_of_one_cell_only(self, name: str) -> None:
        owners: dict[str, str] = {}
        for cell in load_domain(name).cells:
            for sentence in cell.sentences:
                for number in range(sentence.count):
                    wording = sentence.wording(number)
                    assert owners.setdefault(wording, cell.place) == cell.place
                    assert wording[-1] in ".!?\"'”", (cell.place, wording)
                    assert not re.search(r" [,.;:]|,,|\.\.(?!\d)", wording), (cell.place, wording)

    def test_every_split_has_wordings_for_every_cell(self, name: str) -> None:
        for cell in load_domain(name).cells:
            shares = {22: (13, 4, 5), 10: (6, 2, 2)}[len(cell.sentences)]
            for split, share in zip(("train", "validation", "test"), shares, strict=True):
                assert len(cell.pool(split, "wordings")) >= len(cell.sentences) // 4
                assert len(cell.pool(split, "sentences")) == share


def test_custom_file_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "weather.toml"
    file.write_text(SMALL)
    domain = load_domain(file)
    assert load_domain(str(file)) == domain
    assert domain.symbols == (("bad",), ("good",), ("bad", "good"))
    assert (domain.sentence_count, domain.wording_count) == (9, 36)


def test_schema_has_both_predicates_and_their_relation() -> None:
    schema = parse_domain(SMALL, "weather.toml").schema((0.25, 0.75))
    assert schema["day"].prior == (0.25, 0.75)
    assert schema["mood"].prior == pytest.approx((0.8 * 0.25 + 0.3 * 0.75, 0.2 * 0.25 + 0.7 * 0.75))
    assert schema.related("day") == ("mood",)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('letter = "W"', "", "letter: is missing"),
        ('letter = "W"', "letter = 3", "letter: must be a text"),
        ('letter = "W"', 'letter = "W"\ncolour = "red"', "colour: unknown key"),
        ('letter = "W"', 'letter = "W', "not valid TOML"),
        ("shares = [0.5, 0.5]", "shares = [0.5, 0.6]", "shares: must be above 0 with a sum of 1"),
        ("shares = [0.5, 0.5]", "shares = [1.0]", "shares: must be a list of 2 numbers"),
        ('values = ["bad", "good"]', 'values = ["bad"]', "values: must be a list of at least 2"),
        ("[0.3, 0.7]]", "[0.3, 0.6]]", r"related\.table: must be above 0 with a sum of 1"),
        (", [0.3, 0.7]]", "]", r"related\.table: must have a row for each of 2 values"),
        ('"Go out."', '"Go out.", "Run."', "value_meanings: must be 2, got 3"),
        ('kind = "choice"', 'kind = "colour"', r"fields\[0\]\.kind: must be one of"),
        ('kind = "choice"', 'kind = "choice"\nweight = 1', r"fields\[0\]\.weight: unknown key"),
        ("range = [950.0, 1050.0]", "range = [9, 1]", r"fields\[1\]\.range: must increase"),
        ("decimals = 1", "decimals = 0.5", r"fields\[1\]\.decimals: must be a whole number"),
        ("weight = 1.0", "", "no field has a weight"),
        ('name = "pressure"', 'name = "town"', "names must be unique"),
        ('name = "pressure"', 'name = "month"', "'month' cannot be used as the name of a field"),
        (
            'name = "pressure"',
            'name = "day_score"',
            "'day_score' cannot be used as the name of a field",
        ),
        ('letter = "W"', 'letter = "W"\ngrouped_by = "town"', "grouped_by: must name a field of"),
        ('predicate = "mood"', 'predicate = "day"', r"related\.predicate: must differ"),
        ("bad-good =", "bad-best =", r"aspects\[0\]\.between\.bad-best: unknown key"),
        ("[aspects.between]\nbad-good = '''", "[aspects.between]\nx='''", r"between\.x: unknown"),
        ("over [town].", "over [city].", r"wordings\.bad: sentence 1: unknown slot \[city\]"),
        ("over [town].", "over [pressure].", r"unknown slot \[pressure\]"),
        ("over [town].", "over [town.", "sentence 1: unmatched bracket"),
        ("over [town].", "over | it.", "sentence 1: unmatched bracket or bar"),
        ("[2..4]", "[4..2]", r"sentence 2: \[4\.\.2\] is not an increasing range"),
        ("{Dark|Grey}", "{Dark}", "sentence 1: {Dark} needs two or more different alternatives"),
        ("{Dark|Grey}", "{Dark|Dark}", "needs two or more different alternatives"),
    ],
)
def test_invalid_declaration_names_file_and_key(old: str, new: str, problem: str) -> None:
    assert SMALL.count(old) >= 1
    with pytest.raises(DatasetError, match=problem) as caught:
        parse_domain(SMALL.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert "Nothing was loaded" in str(caught.value)


def test_a_cell_without_sentences_is_refused() -> None:
    empty = re.sub(r"(bad-good = ''')[^']*'''", r"\1\n\n'''", SMALL)
    with pytest.raises(DatasetError, match=r"between\.bad-good: must be a text"):
        parse_domain(empty, "mine.toml")


def test_duplicate_sentence_is_refused() -> None:
    line = "{Light|Thin} haze {comes|goes}."
    with pytest.raises(DatasetError, match=r"between\.bad-good: has duplicate sentences"):
        parse_domain(SMALL.replace(line, f"{line}\n{line}"), "mine.toml")


def test_unknown_domain_lists_the_known_ones() -> None:
    with pytest.raises(DatasetError, match=r"unknown domain 'astrology'.*'compliance'"):
        load_domain("astrology")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none\.toml: cannot be read"):
        load_domain(tmp_path / "none.toml")
