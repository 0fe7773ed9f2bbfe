from __future__ import annotations

from pathlib import Path

import pytest

from lpf.errors import SchemaError, UnknownPredicateError, UnknownValueError
from lpf.schema import Predicate, Relation, Schema

TOML = """
[[predicates]]
name = "level"
values = ["low", "medium", "high"]
prior = [0.3, 0.4, 0.3]
staleness_days = 10

[[predicates]]
name = "outcome"
values = ["clean", "qualified"]

[[relations]]
between = ["level", "outcome"]
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    return path


def test_toml_and_python_give_the_same_schema(tmp_path: Path) -> None:
    built = Schema(
        (
            Predicate("level", ("low", "medium", "high"), (0.3, 0.4, 0.3), 10),
            Predicate("outcome", ("clean", "qualified")),
        ),
        (Relation(("level", "outcome")),),
    )
    read = Schema.from_toml(write(tmp_path, TOML))
    assert read == built
    assert read.hash == built.hash
    assert Schema.from_dict(built.to_dict()) == built


def test_default_prior_and_staleness() -> None:
    predicate = Predicate("outcome", ("clean", "qualified"))
    assert predicate.prior == (0.5, 0.5)
    assert predicate.staleness_days == 30


def test_order_of_values_changes_the_hash() -> None:
    one, other = Schema((Predicate("p", ("a", "b")),)), Schema((Predicate("p", ("b", "a")),))
    assert one["p"].position("b") == 1
    assert one.hash != other.hash


def test_related_is_transitive() -> None:
    names = ("a", "b", "c", "d")
    schema = Schema(
        tuple(Predicate(name, ("x", "y")) for name in names),
        (Relation(("a", "b")), Relation(("b", "c"))),
    )
    assert schema.related("a") == ("b", "c")
    assert schema.related("d") == ()
    assert schema.groups == (("a", "b", "c"), ("d",))


def test_single_value_is_allowed() -> None:
    assert Predicate("p", ("only",)).prior == (1.0,)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('values = ["low", "medium", "high"]', "values = []"), "values"),
        (('"medium", "high"]', '"low", "high"]'), "values: ['low'] given more than once"),
        (("0.4", "0.5"), "prior: sums to 1.1"),
        (("[0.3, 0.4, 0.3]", "[0.3, 0.7]"), "prior: has 2 numbers for 3 values"),
        (("0.4, 0.3]", "1.0, -0.3]"), "prior: must be finite and not negative"),
        (("staleness_days = 10", "staleness_days = 0"), "staleness_days"),
        (('name = "level"', 'name = " "'), "predicates[0]: name"),
        (('name = "level"', 'name = "outcome"'), "predicates: ['outcome'] given more than once"),
        (('"outcome"]', '"nobody"]'), "relations[0].between: 'nobody' is not a predicate"),
        (('["level", "outcome"]', '["level"]'), "between"),
        (("staleness_days = 10", "stale = 10"), "predicates[0].stale: unknown field"),
        (('values = ["low", "medium", "high"]\n', ""), "predicates[0].values: is missing"),
        (('values = ["low", "medium", "high"]', 'values = "low"'), "must be a list"),
        (("[[relations]]", "[[relations"), "not valid TOML"),
    ],
)
def test_invalid_schema_names_file_and_field(
    tmp_path: Path, change: tuple[str, str], named: str
) -> None:
    assert change[0] in TOML
    path = write(tmp_path, TOML.replace(*change, 1))
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(path)
    assert caught.value.field.startswith(str(path))
    assert named in str(caught.value)


def test_schema_without_predicates_is_refused() -> None:
    with pytest.raises(SchemaError, match="at least one predicate"):
        Schema(())


def test_unknown_names_list_the_known_ones() -> None:
    schema = Schema((Predicate("p", ("a", "b")),))
    with pytest.raises(UnknownPredicateError, match=r"it has \['p'\]"):
        schema["q"]
    with pytest.raises(UnknownValueError, match=r"its values are \['a', 'b'\]"):
        schema["p"].position("c")


@pytest.mark.parametrize("name", [" level", "level ", "\tlevel"])
def test_names_with_surrounding_blanks_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="blanks"):
        Predicate(name, ("a", "b"))
    with pytest.raises(SchemaError, match="blanks"):
        Predicate("level", ("a", name))


def test_a_predicate_has_at_most_a_thousand_values() -> None:
    values = tuple(f"v{number}" for number in range(1001))
    assert len(Predicate("wide", values[:1000]).values) == 1000
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict({"predicates": [{"name": "wide", "values": list(values)}]})
    assert caught.value.field == "predicates[0]: predicate 'wide': values"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("description", "is_claim"),
    [
        ("Is this paper accepted at ICLR 2017?", True),
        ("How reliable is the firm?", True),
        ("  The company complies, or it will soon. ", True),
        ("The supplier is reliable.", True),
        ("", False),
        ("Accepted?", False),
        ("The level of compliance.", False),
        ("What the evidence says of the claim.", False),
        ("Whether the paper was accepted.", False),
        ("the supplier is reliable", False),
    ],
)
def test_a_description_is_a_claim_if_it_asks_or_states(description: str, is_claim: bool) -> None:
    predicate = Predicate("outcome", ("no", "yes"), description=description)
    assert predicate.claim == (description.strip() if is_claim else None)
    assert Schema((predicate,)).claim == predicate.claim
    assert Schema((predicate, Predicate("other", ("a", "b")))).claim is None
