"""The fine-tuned transformer: its input, its training, and what it does not change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from baseline_examples import SEED, SMALL_BUDGET, parts, predicate, small_transformer

from lpf.baselines.transformer import (
    FineTunedTransformer,
    TransformerConfig,
    WholeTransformer,
    padded,
    shuffled_batches,
    split_layers,
    token_rows,
)
from lpf.baselines.transformer_checkpoints import TokenBudget, fair_shares, load_checkpoint
from lpf.datasets import DatasetEntity, DatasetItem
from lpf.errors import ConfigError


class Letters:
    """A token a letter."""

    def pieces(self, text: str, limit: int) -> list[int]:
        return [ord(letter) for letter in text[:limit]]


def row(texts: list[str], limit: int, claim: str | None = None) -> str:
    items = tuple(DatasetItem(str(place), text) for place, text in enumerate(texts))
    budget = TokenBudget(ord("^"), ord("|"), limit)
    return "".join(map(chr, budget.row(DatasetEntity("one", {}, items, claim), Letters())))


def test_the_claim_comes_first_and_texts_in_alphabetical_order() -> None:
    assert row(["no", "ay"], 99, claim="why") == "^why|ay|no|"
    assert row(["no", "ay"], 99) == row(["ay", "no"], 99) == "^ay|no|"


def test_long_texts_are_cut_alike_and_short_ones_stay_whole() -> None:
    assert row(["aaaaaaaa", "b", "cccccc"], 14) == "^aaaaa|b|cccc|"
    assert fair_shares([8, 1, 6], 10) == [5, 1, 4]
    assert fair_shares([3, 2], 9) == [3, 2]


@pytest.mark.parametrize("limit", [3, 4, 5, 12, 40])
def test_no_row_is_too_long_and_no_text_is_lost_while_there_is_room(limit: int) -> None:
    found = row([letter * 9 for letter in "abcde"], limit)
    assert len(found) <= limit
    assert len(set(found) - set("^|")) == min(5, (limit - 1) // 2)


def test_batches_hold_every_row_once_and_differ_between_epochs() -> None:
    rows = [torch.zeros(length) for length in np.random.default_rng(0).integers(5, 90, 300)]
    first, second = (shuffled_batches(rows, 16, SEED, epoch) for epoch in (0, 1))
    for batches in (first, second):
        assert sorted(place for batch in batches for place in batch) == list(range(300))
    assert first != second
    spread = [
        max(len(rows[p]) for p in batch) - min(len(rows[p]) for p in batch) for batch in first
    ]
    assert np.mean(spread) < 20


def test_the_two_parts_together_are_the_whole_and_padding_changes_nothing() -> None:
    loaded = load_checkpoint(None)
    _, _, test = parts()
    tokens, mask = padded(token_rows(loaded, test.select(np.arange(2)), 96))
    assert mask.min() == 0  # of different lengths
    lower, upper = split_layers(loaded.body.eval(), 1)
    assert lower is not None
    assert not any(each.requires_grad for each in lower.parameters())
    with torch.no_grad():
        whole = WholeTransformer(loaded.body)(tokens, mask)[mask == 1]
        cut = upper(lower(tokens, mask), mask)[mask == 1]
    np.testing.assert_allclose(cut, whole, atol=1e-5)


def test_training_prints_nothing_and_leaves_the_global_generator_alone(
    capfd: pytest.CaptureFixture[str],
) -> None:
    train, validation, test = parts()
    small_transformer()
    capfd.readouterr()
    before = torch.get_rng_state()
    budget = replace(SMALL_BUDGET, epochs=1, trained_layers=1)
    method = FineTunedTransformer("small", small_transformer(), budget)
    few = train.select(np.arange(20))
    method.fit(few, validation.select(np.arange(5)), predicate(), SEED).predict_proba(test)
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rates": ()}, "rates"),
        ({"rates": (0.0,)}, "rates"),
        ({"epochs": 0}, "epochs"),
        ({"max_tokens": 2}, "max_tokens"),
        ({"trained_layers": -1}, "trained_layers"),
    ],
)
def test_a_budget_out_of_range_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TransformerConfig(**settings)  # type: ignore[arg-type]


def test_a_folder_without_a_transformer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_checkpoint(tmp_path)


def test_more_tokens_than_the_transformer_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match="129 is more than the 128"):
        load_checkpoint(small_transformer()).budget(129)


def test_unknown_architectures_are_refused() -> None:
    with pytest.raises(ConfigError, match="Linear is not built like BERT"):
        split_layers(torch.nn.Linear(2, 2), 1)
