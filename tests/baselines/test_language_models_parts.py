"""Prompts, parsing, distributions, samples and settings: the parts that need no server."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from baseline_examples import reordered, without_labels

from language_model_server import LEVEL, VALUES, entity, examples_from, saying
from lpf import metrics
from lpf.baselines.language_models import MODEL_PRESETS, EndpointConfig, Prices, Stated, sampled
from lpf.baselines.language_models.client import retry_after
from lpf.baselines.language_models.prompting import (
    Unreadable,
    distribution,
    make_prompts,
    parse_answer,
)
from lpf.errors import ConfigError
from lpf.training import Examples

URL = "https://host.example/v1"


def prompt_of(examples: Examples) -> str:
    [prompt] = make_prompts(examples, LEVEL, {"high": "All duties were met."})
    return prompt


def test_a_prompt_has_question_values_claim_and_evidence() -> None:
    asked = examples_from([entity(1, "Paid late.", "Clean audit.", claim="The firm pays.")])
    asked = replace(asked, credibility=np.array([0.25, np.nan]))
    prompt = prompt_of(asked)
    assert 'which value does "level" have? How well the duties were met.' in prompt
    assert '- "low"\n- "medium"\n- "high": All duties were met.' in prompt
    assert 'is about: "The firm pays."' in prompt
    assert 'Evidence:\n1. "Clean audit."\n2. "Paid late." (credibility 0.25)\n' in prompt
    assert '{"value": ' in prompt


def test_a_prompt_without_a_claim_does_not_mention_one() -> None:
    assert "claim" not in prompt_of(saying("plainly"))


def test_a_prompt_holds_no_label_and_no_id() -> None:
    asked = saying("plainly", label="medium")
    assert prompt_of(without_labels(asked)) == prompt_of(asked)
    assert "secret-id" not in prompt_of(asked)
    assert asked.dataset.entities[0].evidence[0].evidence_id not in prompt_of(asked)


def test_the_order_of_items_makes_no_difference() -> None:
    asked = examples_from([entity(1, "One.", "Two.", "Three.")])
    asked = replace(asked, credibility=np.array([0.1, 0.2, 0.3]))
    assert prompt_of(reordered(asked, [np.array([2, 0, 1])])) == prompt_of(asked)


def test_a_text_cannot_pose_as_another_item() -> None:
    asked = examples_from([entity(1, 'Bad."\n2. "Splendid.')])
    assert '1. "Bad.\\"\\n2. \\"Splendid."\n' in prompt_of(asked)


@pytest.mark.parametrize(
    "text",
    [
        '{"value": "low", "confidence": 0.7, "reason": "so"}',
        '```json\n{"value": "low", "confidence": 0.7, "reason": "so"}\n```',
        'I {think} it is {"value": "LOW ", "confidence": 0.7, "reason": "so"}, don\'t you?',
        '<think>{"value": "high", "confidence": 1}? No.</think>\n'
        '{"reason": "so", "confidence": 0.7, "value": "low", "more": {"value": "high"}}',
        '{"value": "low", "confidence": 0.7, "reason": "so"} and {"not": "an answer"}',
    ],
)
def test_answers_are_found_within_other_text(text: str) -> None:
    assert parse_answer(text, VALUES) == Stated("low", 0.7, "so")


def test_whole_numbers_are_confidences_and_reasons_may_be_missing() -> None:
    assert parse_answer('{"value": "low", "confidence": 1}', VALUES) == Stated("low", 1.0, "")
    found = parse_answer('{"value": "low", "confidence": 0, "reason": 7}', VALUES)
    assert found == Stated("low", 0.0, "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON object"),
        ("low", "no JSON object"),
        ('["low", 0.7]', "no JSON object"),
        ('{"value": "low", "confidence": 0.7', "no JSON object"),
        ("{'value': 'low', 'confidence': 0.7}", "no JSON object"),
        ('{"answer": {"value": "low", "confidence": 0.7}}', "no JSON object"),
        ('{"value": "lowish", "confidence": 0.7}', "value: 'lowish' is not one of"),
        ('{"value": "", "confidence": 0.7}', "value"),
        ('{"value": ["low"], "confidence": 0.7}', "value"),
        ('{"value": null, "confidence": 0.7}', "value"),
        ('{"value": "low"}', "confidence: None"),
        ('{"value": "low", "confidence": "0.7"}', "confidence: '0.7'"),
        ('{"value": "low", "confidence": true}', "confidence"),
        ('{"value": "low", "confidence": 70}', "confidence: 70"),
        ('{"value": "low", "confidence": -0.1}', "confidence"),
        ('{"value": "low", "confidence": NaN}', "confidence"),
        ('{"value": "low", "confidence": 1e999}', "confidence"),
        ('{"value": ' + "[" * 20_000, "no JSON object"),
    ],
)
def test_anything_else_is_a_failed_parse(text: str, problem: str) -> None:
    found = parse_answer(text, VALUES)
    assert isinstance(found, Unreadable)
    assert problem in found.problem
    assert len(found.problem) < 400


def test_an_ambiguous_value_is_not_parsed() -> None:
    text = '{"value": "LOW", "confidence": 0.5}'
    assert isinstance(parse_answer(text, ("low", "Low")), Unreadable)
    assert parse_answer(text.replace("LOW", "Low"), ("low", "Low")) == Stated("Low", 0.5, "")


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        (0.8, [0.1, 0.8, 0.1]),
        (1.0, [0.005, 0.99, 0.005]),
        (0.2, [(1 - 0.01 - 1 / 3) / 2, 1 / 3 + 0.01, (1 - 0.01 - 1 / 3) / 2]),
        (0.0, [(1 - 0.01 - 1 / 3) / 2, 1 / 3 + 0.01, (1 - 0.01 - 1 / 3) / 2]),
    ],
)
def test_a_confidence_becomes_a_distribution(confidence: float, expected: list[float]) -> None:
    np.testing.assert_allclose(distribution(Stated("medium", confidence, ""), VALUES), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 500])
@pytest.mark.parametrize("confidence", [0.0, 0.002, 0.5, 1.0])
def test_the_stated_value_is_always_the_likeliest(size: int, confidence: float) -> None:
    values = [f"v{number}" for number in range(size)]
    row = distribution(Stated(values[-1], confidence, ""), values)
    assert row.argmax() == size - 1
    assert row.min() > 0.0
    metrics.confidences(row[None])


def shares(examples: Examples) -> list[int]:
    return np.bincount(examples.dataset.labels("level"), minlength=3).tolist()


def crowd() -> Examples:
    labels = ["low"] * 20 + ["medium"] * 70 + ["high"] * 9 + ["low"]
    return examples_from([entity(i, f"Note {i}.", label=one) for i, one in enumerate(labels)])


def test_a_sample_keeps_the_shares_of_the_values() -> None:
    everyone = crowd()
    found = sampled(everyone, "level", 10, np.random.default_rng(0))
    assert shares(found) == [2, 7, 1]
    places = [int(one.entity_id.split("-")[-1]) for one in found.dataset]
    assert places == sorted(places)
    assert [item.text for item in found.dataset.items] == [f"Note {place}." for place in places]


def test_the_generator_decides_who_is_sampled() -> None:
    first, second, other = (
        [one.entity_id for one in sampled(crowd(), "level", 50, np.random.default_rng(s)).dataset]
        for s in (0, 0, 1)
    )
    assert first == second != other
    assert len(first) == len(set(first)) == 50


def test_entities_without_a_value_keep_their_share() -> None:
    found = sampled(without_labels(crowd()), "level", 7, np.random.default_rng(0))
    assert len(found.dataset) == 7


def test_small_samples_are_complete_and_empty_ones_refused() -> None:
    everyone = crowd()
    assert sampled(everyone, "level", 100, np.random.default_rng(0)) is everyone
    with pytest.raises(ConfigError, match="limit: must be 1 or above, got 0"):
        sampled(everyone, "level", 0, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"base_url": "host/v1"}, "base_url: must be like"),
        ({"base_url": "ftp://host/v1"}, "base_url: must be like"),
        ({"base_url": f"{URL}?key=1"}, "base_url: must be like"),
        ({"base_url": "https://host:port/v1"}, "base_url: is not an address"),
        ({"base_url": f"{URL}/chat/completions/"}, "base_url: leave /chat/completions off"),
        ({"model": " "}, "model: must be a name"),
        ({"timeout": 0.0}, "timeout: must be above 0"),
        ({"timeout": float("nan")}, "timeout: must be a finite number"),
        ({"first_wait": -1.0}, "first_wait: must be a finite number, 0 or above"),
        ({"longest_wait": float("inf")}, "longest_wait: must be a finite number"),
        ({"temperature": 2.5}, "temperature: must be a finite number, from 0 to 2"),
        ({"retries": -1}, "retries: must be a whole number, 0 or above"),
        ({"retries": True}, "retries: must be a whole number"),
        ({"max_tokens": 0}, "max_tokens: must be a whole number, 1 or above"),
        ({"concurrency": 0}, "concurrency"),
        ({"limit": 0}, "limit"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        EndpointConfig(**{"base_url": URL, "model": "m", **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"api_key_env": "gsk-1234"}, {"api_key_env": ""}])
def test_a_key_in_place_of_its_variable_is_refused_and_not_shown(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="not the key itself") as refused:
        EndpointConfig(URL, "m", **settings)
    assert "1234" not in str(refused.value)


def test_a_login_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="holds a login") as refused:
        EndpointConfig("https://me:hidden@host/v1", "m")
    assert "hidden" not in str(refused.value)


def test_prices_are_not_negative() -> None:
    with pytest.raises(ConfigError, match=r"prices\.output"):
        Prices(0.1, -0.1)


def test_the_papers_models_are_presets() -> None:
    assert set(MODEL_PRESETS) == {
        "llama-3.3-70b-versatile",
        "qwen3-32b",
        "kimi-k2-instruct-0905",
        "gpt-oss-120b",
    }
    found = MODEL_PRESETS["llama-3.3-70b-versatile"].at(URL, "SOME_KEY")
    assert found.model == "llama-3.3-70b-versatile"
    assert found.prices == Prices(0.59, 0.79)
    assert found.api_key_env == "SOME_KEY"
    assert found.limit == 50


def test_waits_that_servers_ask_for() -> None:
    assert retry_after(None) is None
    assert retry_after("7") == 7.0
    assert retry_after("-7") == 0.0
    assert retry_after("soon") is None
    assert retry_after("9" * 400) is None
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 85.0 < (retry_after(later) or 0.0) <= 90.0
    assert retry_after("Sun, 06 Nov 1994 08:49:37 GMT") == 0.0


def test_without_httpx_the_message_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "from lpf.baselines.language_models.asking import ask_all\n"
        "from lpf.baselines.language_models import EndpointConfig\n"
        "from lpf.errors import ConfigError\n"
        f"try: ask_all(EndpointConfig({URL!r}, 'm'), ['?'])\n"
        "except ConfigError as error: assert 'lpf[baselines]' in str(error)\n"
        "else: raise SystemExit('asked without httpx')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
