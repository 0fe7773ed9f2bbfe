"""Asking a language model over HTTP, against a real server on this machine."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from language_model_server import (
    SLOW,
    VALUES,
    ChatServer,
    config_for,
    entity,
    examples_from,
    fitted,
    saying,
)
from lpf import metrics
from lpf.baselines.language_models import LanguageModel, LanguageModelError, Prices
from lpf.errors import ConfigError, InputFileError, UnknownPredicateError, UnknownValueError
from method_runs import run_methods

HIGH = np.array([0.1, 0.1, 0.8])
UNIFORM = np.full(3, 1 / 3)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer()
    yield running
    running.stop()


def test_a_stated_answer_becomes_a_distribution(server: ChatServer) -> None:
    answers = fitted(config_for(server.url)).ask(saying("plainly", "fenced", "mislabelled"))
    np.testing.assert_allclose(answers.probabilities, [HIGH] * 3)
    assert not answers.failed.any()
    assert answers.stated[1] is not None
    assert answers.stated[1].reason == "The audit was clean."


def test_the_request_has_the_documented_fields(server: ChatServer) -> None:
    fitted(config_for(server.url + "/", max_tokens=77)).predict_proba(saying("plainly"))
    [request] = server.received
    assert request.path == "/v1/chat/completions"
    assert request.authorization is None
    assert request.body["model"] == "small"
    assert request.body["temperature"] == 0.0
    assert request.body["max_tokens"] == 77
    assert "Note 0, answered plainly." in request.prompt


def test_constructing_and_fitting_send_no_request(server: ChatServer) -> None:
    model = fitted(config_for(server.url))
    assert len(model.prompts(saying("plainly", "prose"))) == 2
    assert not server.received


@pytest.mark.parametrize(
    ("word", "problem", "requests"),
    [
        ("prose", "no JSON object with a value in 'It is high", 1),
        ("truncated", "cut off at max_tokens", 1),
        ("broken", "the call failed: HTTP 500: 'for ever'", 3),
        ("malformed", "not a chat completion", 1),
        ("webpage", "not a chat completion: '<html>Please log in.</html>'", 1),
        ("stranger", "not a chat completion", 1),
    ],
)
def test_failed_answers_are_uniform_and_never_correct(
    server: ChatServer, word: str, problem: str, requests: int
) -> None:
    for label in VALUES:
        server.received.clear()
        asked = saying("plainly", word, label=label)
        answers = fitted(config_for(server.url)).ask(asked)
        assert answers.failed.tolist() == [False, True]
        assert answers.stated[1] is None
        assert problem in str(answers.problems[1])
        assert server.count(word) == requests
        np.testing.assert_allclose(answers.probabilities, [HIGH, UNIFORM])
        labels = asked.dataset.labels("level")
        assert answers.right(labels).tolist() == [label == "high", False]
        assert answers.accuracy(labels) == (0.5 if label == "high" else 0.0)


def test_failed_answers_are_not_correct_by_chance(server: ChatServer) -> None:
    """Why accuracy is asked of the answers: the first value of a uniform row is sometimes right."""
    asked = saying("plainly", "prose", label="low")
    answers = fitted(config_for(server.url)).ask(asked)
    labels = asked.dataset.labels("level")
    assert metrics.accuracy(answers.probabilities, labels) == 0.5
    assert answers.accuracy(labels) == 0.0
    confidence, right = answers.confidence_and_hits(labels)
    np.testing.assert_allclose(confidence, [0.8, 1 / 3])
    assert not right.any()


def test_too_many_requests_are_repeated_when_the_server_says(server: ChatServer) -> None:
    answers = fitted(config_for(server.url)).ask(saying("patience"))
    first, second = server.received
    assert second.at - first.at >= 1.0  # Retry-After: 1, though the first wait would be .01
    assert not answers.failed[0]
    assert (answers.costs.requests, answers.costs.retries) == (2, 1)


def test_waits_double(server: ChatServer) -> None:
    answers = fitted(config_for(server.url, first_wait=0.2)).ask(saying("hiccup"))
    first, second, third = (one.at for one in server.received)
    assert second - first >= 0.2
    assert third - second >= 0.4
    assert not answers.failed[0]
    assert answers.costs.retries == 2


def test_a_wait_longer_than_allowed_ends_the_run(server: ChatServer) -> None:
    with pytest.raises(LanguageModelError, match=r"HTTP 429: 'quota'.*longest_wait above 60 s"):
        fitted(config_for(server.url)).ask(saying("tomorrow"))
    assert len(server.received) == 1


def test_a_late_answer_is_a_failure(server: ChatServer) -> None:
    config = config_for(server.url, timeout=0.3, retries=1)
    answers = fitted(config).ask(saying("slow", "plainly"))
    assert answers.failed.tolist() == [True, False]
    assert "no answer within 0.3 s" in str(answers.problems[0])
    assert server.count("slow") == 2
    assert answers.costs.failed_calls == 1


@pytest.mark.parametrize("word", ["broken", "webpage"])
def test_an_endpoint_that_answers_nothing_is_an_error(server: ChatServer, word: str) -> None:
    with pytest.raises(LanguageModelError, match="none of 2 questions was answered"):
        fitted(config_for(server.url)).predict_proba(saying(word, word))


@pytest.mark.parametrize(
    ("word", "said"), [("forbidden", "HTTP 401.*api_key_env"), ("moved", "HTTP 302")]
)
def test_a_refusal_ends_the_run_at_once(server: ChatServer, word: str, said: str) -> None:
    """Also for those that wait to ask again, and those that have not begun."""
    config = config_for(server.url, concurrency=2, first_wait=30.0)
    start = time.monotonic()
    with pytest.raises(LanguageModelError, match=rf"small at {server.url}: {said}"):
        fitted(config).ask(saying("broken", word, *["plainly"] * 40))
    assert time.monotonic() - start < 10.0
    assert len(server.received) < 20


def test_an_unreachable_address_ends_the_run() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        config = config_for(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retries=1)
        with pytest.raises(LanguageModelError, match=r"no server there.*check base_url"):
            fitted(config).ask(saying("plainly"))


def test_the_key_comes_from_the_environment_and_shows_nowhere(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_KEY", "secret-1234")
    model = fitted(config_for(server.url, api_key_env="SOME_KEY"), folder=tmp_path)
    model.ask(saying("plainly"))
    assert server.received[0].authorization == "Bearer secret-1234"
    with pytest.raises(LanguageModelError) as refused:
        model.ask(saying("forbidden"))
    assert "bad key (key)" in str(refused.value)
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "secret-1234" not in f"{refused.value}{model}{kept}"


def test_without_its_key_nothing_is_asked(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ConfigError, match="variable SOME_KEY is not set"):
        fitted(config_for(server.url, api_key_env="SOME_KEY")).ask(saying("plainly"))
    assert not server.received


def test_more_entities_than_the_limit_are_refused(server: ChatServer) -> None:
    model = fitted(config_for(server.url, limit=2))
    with pytest.raises(
        ConfigError, match=r"3 entities were given and endpoint.limit is 2.*sampled"
    ):
        model.predict_proba(saying("plainly", "prose", "fenced"))
    assert not server.received


def test_no_more_run_at_once_than_allowed(server: ChatServer) -> None:
    fitted(config_for(server.url, concurrency=3)).ask(saying(*["plainly"] * 12))
    assert 2 <= server.most_open <= 3


def test_only_failed_requests_are_repeated(server: ChatServer, tmp_path: Path) -> None:
    asked = saying("plainly", "prose", "broken", "fenced")
    config = config_for(server.url, prices=Prices(1.0, 10.0))
    first = fitted(config, folder=tmp_path).ask(asked)
    server.received.clear()
    second = fitted(config, folder=tmp_path).ask(asked)
    assert {one.prompt for one in server.received} == {fitted(config).prompts(asked)[2]}
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.stated == second.stated
    assert (first.costs.kept, second.costs.kept) == (0, 3)
    assert replace(first.costs, kept=3) == second.costs


def test_an_interrupted_run_continues_without_repeating_requests(
    server: ChatServer, tmp_path: Path
) -> None:
    model = fitted(config_for(server.url, concurrency=1), folder=tmp_path)
    asked = saying("plainly", "fenced", "forbidden")
    with pytest.raises(LanguageModelError):
        model.ask(asked)
    server.received.clear()
    assert not model.ask(asked.select(np.array([0, 1]))).failed.any()
    assert not server.received


def test_stored_replies_need_neither_key_nor_server(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_KEY", "secret-1234")
    model = fitted(config_for(server.url, api_key_env="SOME_KEY"), folder=tmp_path)
    before = model.predict_proba(saying("plainly"))
    monkeypatch.delenv("SOME_KEY")
    np.testing.assert_array_equal(model.predict_proba(saying("plainly")), before)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "changed", [{"model": "large"}, {"temperature": 0.5}, {"max_tokens": 9}, {"base_url": "/v2"}]
)
def test_another_model_or_setting_sends_new_requests(
    server: ChatServer, tmp_path: Path, changed: dict[str, object]
) -> None:
    if "base_url" in changed:
        changed = {"base_url": server.url.replace("/v1", "/v2")}
    for settings in ({}, changed):
        fitted(config_for(server.url, **settings), folder=tmp_path).ask(saying("plainly"))
    assert len(server.received) == 2


@pytest.mark.parametrize("content", ["{", "[]", '{"text": "high"}'])
def test_a_damaged_stored_reply_is_named(server: ChatServer, tmp_path: Path, content: str) -> None:
    model = fitted(config_for(server.url), folder=tmp_path)
    model.ask(saying("plainly"))
    [path] = tmp_path.iterdir()
    path.write_text(content)
    with pytest.raises(InputFileError, match=rf"{path.name} is not a stored reply.*Remove it"):
        model.ask(saying("plainly"))


def test_stored_replies_contain_no_evidence(server: ChatServer, tmp_path: Path) -> None:
    fitted(config_for(server.url), folder=tmp_path).ask(saying("plainly"))
    [path] = tmp_path.iterdir()
    assert "Note 0" not in path.read_text()
    assert "audit was clean" in json.loads(path.read_text())["text"]


def test_equal_prompts_are_asked_once(server: ChatServer) -> None:
    twins = examples_from([entity(i, "Said plainly.") for i in range(3)])
    answers = fitted(config_for(server.url)).ask(twins)
    assert len(server.received) == answers.costs.questions == 1
    np.testing.assert_allclose(answers.probabilities, [HIGH] * 3)


def test_costs_add_up(server: ChatServer) -> None:
    config = config_for(server.url, prices=Prices(1.0, 10.0), timeout=30.0)
    asked = saying("plainly", "hiccup", "prose", "broken", "slow")
    costs = fitted(config).ask(asked).costs
    assert (costs.questions, costs.requests, costs.retries) == (5, 1 + 3 + 1 + 3 + 1, 4)
    assert (costs.failed_calls, costs.failed_parses, costs.estimated) == (1, 1, 0)
    assert (costs.input_tokens, costs.output_tokens) == (400, 80)
    assert costs.money == pytest.approx((400 * 1.0 + 80 * 10.0) / 1e6)
    assert costs.mean_seconds is not None
    assert costs.p95_seconds is not None
    assert SLOW / 4 <= costs.mean_seconds < costs.p95_seconds < 30.0
    assert json.loads(json.dumps(costs.to_dict()))["retries"] == 4


def test_tokens_are_estimated_if_the_server_reports_none(server: ChatServer) -> None:
    model = fitted(config_for(server.url))
    asked = saying("uncounted")
    costs = model.ask(asked).costs
    assert costs.estimated == 1
    assert costs.input_tokens == -(-len(model.prompts(asked)[0]) // 4)
    assert costs.money is None


def test_it_runs_among_the_other_methods(server: ChatServer, tmp_path: Path) -> None:
    """A temperature is fitted on validation entities, so requests are sent for them too."""
    method = LanguageModel("asked", config_for(server.url), folder=tmp_path)
    data = saying("plainly", "fenced")
    found = run_methods([method], data, data, data, "level", 0, by_count=False)["asked"]
    assert found.temperature is not None
    np.testing.assert_allclose(found.raw, [HIGH] * 2)
    assert len(server.received) == 2


def test_data_with_other_values_are_refused(server: ChatServer) -> None:
    asked = saying("plainly")
    schema = replace(
        asked.dataset.schema,
        predicates=(replace(asked.dataset.schema["level"], values=VALUES[::-1]),),
    )
    other = replace(asked, dataset=replace(asked.dataset, schema=schema))
    with pytest.raises(ConfigError, match="Nothing was asked"):
        fitted(config_for(server.url)).ask(other)


def test_an_unknown_predicate_or_value_is_refused_when_fitted(server: ChatServer) -> None:
    data, config = saying("plainly"), config_for(server.url)
    with pytest.raises(UnknownPredicateError, match="depth"):
        LanguageModel("asked", config).fit(data, data, "depth", 0)
    with pytest.raises(UnknownValueError, match="lowest"):
        LanguageModel("asked", config, {"lowest": "Nothing."}).fit(data, data, "level", 0)
