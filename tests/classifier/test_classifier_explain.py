"""A classifier's explanations are those of a workspace: parts add up, leave-one-out is asking
again, what if."""

from __future__ import annotations

import numpy as np
import pytest
from classifier_examples import fitted, suppliers

from lpf.errors import ConfigError
from lpf.explain import Changes
from lpf.types import Evidence

X, _ = suppliers(3)
ENTITIES = [X[0], [], [*X[2], X[2][0]], X[1]]
VARIANTS = ["spn", "learned"]
# LPF-Learned runs its networks in float32.
TOLERANCE = {"spn": 1e-9, "learned": 1e-5}


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_sum_to_the_log_odds_of_the_answers(variant: str) -> None:
    classifier = fitted(variant)
    answers = classifier.predict_proba(ENTITIES)
    explained = classifier.explain(ENTITIES)
    for entity, answer, found in zip(ENTITIES, answers, explained, strict=True):
        np.testing.assert_allclose(found.probabilities, answer, rtol=0, atol=TOLERANCE[variant])
        assert len(found.items) == len(entity)
        total = sum(bits for _, bits in found.between("good", "bad"))
        assert total == pytest.approx(found.log_odds("good", "bad"), abs=1e-9)
    assert [found.entity_id for found in explained] == ["X[0]", "X[1]", "X[2]", "X[3]"]
    assert explained[1].method == "prior"


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_an_item_is_asking_again(variant: str) -> None:
    classifier, entity = fitted(variant), ENTITIES[2]
    (found,) = classifier.explain([entity])
    for place, item in enumerate(found.items):
        assert item.without is not None
        again = classifier.predict_proba([[*entity[:place], *entity[place + 1 :]]])[0]
        # Networks run in float32, and in blocks of other sizes for fewer items.
        np.testing.assert_allclose(item.without, again, rtol=0, atol=1e-5)
        dropped = classifier.what_if(entity, Changes(drop=(item.name,)))
        np.testing.assert_allclose(
            item.without, dropped.probabilities, rtol=0, atol=TOLERANCE[variant]
        )


def test_copies_are_named_and_the_text_for_people_has_verdict_items_and_reasons() -> None:
    (found,) = fitted().explain([ENTITIES[2]])
    first, last = found.items[0], found.items[-1]
    assert last.name in first.copies_of
    assert first.weight.copies == pytest.approx(1 / (1 + len(first.copies_of)))
    shown = str(found)
    assert found.ranked[0] in shown.splitlines()[0]
    assert all(item.name in shown for item in found.items)
    assert str(X[2][0]["text"]) in shown
    assert f"it repeats {first.copies_of[0]}" in shown
    assert len(repr(found)) < 100


def test_a_text_of_control_characters_cannot_forge_a_line() -> None:
    text = "Order 7 arrived late.\x1b[2J\nX[0] · label: good, 100 %"
    shown = str(fitted().explain([[text]])[0])
    assert "\x1b" not in shown
    assert sum(line.startswith("X[0]") for line in shown.splitlines()) == 1


def test_items_keep_ids_of_their_own() -> None:
    own = Evidence("S1_E007", "S1", "label", "Audit 2 found forged invoices.")
    (found,) = fitted().explain([[own, "Order 1 came on time."]])
    assert [item.name for item in found.items] == ["S1_E007", "E2"]


@pytest.mark.parametrize("ids", [("A", "A"), ("E2", None), ("new-1", "A")])
def test_no_two_texts_have_the_same_name(ids: tuple[str | None, ...]) -> None:
    texts = ["Audit 2 found forged invoices.", "Order 1 came on time."]
    entity = [
        text if name is None else Evidence(name, "S1", "label", text)
        for name, text in zip(ids, texts, strict=True)
    ]
    changes = Changes(drop=("E1",), add=("Order 3 was complete.",))
    found = fitted().what_if(entity, changes)
    assert [item.name for item in found.items] == ["E2", "new-1"]
    assert found.texts == {"E1": texts[0], "E2": texts[1], "new-1": changes.add[0]}


def test_what_if_texts_are_added_and_weights_changed() -> None:
    classifier, entity = fitted(), X[1]
    plain = classifier.what_if(entity)
    np.testing.assert_array_equal(plain.probabilities, classifier.predict_proba([entity])[0])
    text = "Audit 2 found forged invoices."
    added = classifier.what_if(entity, Changes(add=(text,)))
    asked = classifier.predict_proba([[*entity, text]])[0]
    np.testing.assert_allclose(added.probabilities, asked, rtol=0, atol=1e-9)
    assert added.texts["new-1"] == text
    nothing = classifier.what_if([], Changes(add=(text,)))
    np.testing.assert_allclose(nothing.probabilities, classifier.predict_proba([[text]])[0])
    silent = classifier.what_if(entity, Changes(weights={"E1": 0.0}))
    assert silent.items[0].weight.total == 0.0
    with pytest.raises(ConfigError):
        classifier.what_if(entity, Changes(drop=("E99",)))
    with pytest.raises(ConfigError) as caught:
        classifier.what_if(entity, Changes(facts={"label": "good"}))
    assert caught.value.field == "facts"
