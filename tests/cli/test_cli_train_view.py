"""What train, models and evaluate report besides scores: claims, the prior, ignored options, the
previous model and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labelled_workspaces import LEVELS, WordReader, line, lines, write_lines
from lpf.reading import PairReader
from lpf.schema import Predicate, Schema
from lpf.training import ladder
from lpf.workspace import Workspace, wiring
from lpf.workspace.circuit import learn_from_rows
from tuned_models import quick_ladder, tiny_reader

SMALL = ("--hidden", 8, "--latent-width", 4, "--model", "networks", "--no-aggregator")
QUICK = ("--seeds", "1,2", "--max-epochs", 3, *SMALL, "--no-report")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "data.jsonl", lines(60))


@pytest.fixture
def few(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "few.jsonl", lines(12))


@pytest.fixture
def lpf(lpf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Commands in a workspace that asks for a level and reads words."""
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
    monkeypatch.setenv("COLUMNS", "80")
    Workspace.create(tmp_path / "own", Schema((Predicate("level", LEVELS),))).close()
    return type(lpf)(tmp_path / "own")


def flat(done: Any) -> str:
    assert all(len(one) <= 80 for one in done.stdout.splitlines() if "report" not in one)
    return " ".join(done.stdout.split())


def test_the_output_says_if_claims_were_read(lpf, tmp_path: Path, data: Path) -> None:
    assert "claims" not in lpf("train", data, *QUICK).stdout
    claims = write_lines(tmp_path / "claims.jsonl", lines(60, claim="All is well."))
    assert "60 entities have one; read with the evidence" in flat(lpf("train", claims, *QUICK))
    output = lpf.json("train", claims, *QUICK)["data"]["claims"]
    assert output == {"entities": 60, "read": True}
    with (lpf.folder / "lpf.toml").open("r+") as settings:
        text = settings.read().replace("[reader]\n", "[reader]\nwith_claim = false\n")
        settings.seek(0)
        settings.write(text)
    assert "60 entities have one; not read" in flat(lpf("train", claims, *QUICK))


def test_the_class_shares_are_listed_with_the_models_scores(lpf, data: Path) -> None:
    output = lpf.json("train", data, *QUICK)
    rows = [one.split() for one in lpf("train", data, *QUICK).stdout.splitlines()]
    for split in ("validation", "test"):
        scores = output["scores"][f"{split}/spn"]["level"]
        accuracy, nll = scores["class_shares_accuracy"], scores["class_shares_nll"]
        row = [split, "class", "shares", f"{100 * accuracy:.2f}", "%", f"{nll:.4f}"]
        assert row in rows
    assert row in [one.split() for one in lpf("models", "show").stdout.splitlines()]


def test_a_model_that_learned_nothing_is_the_first_warning(lpf, tmp_path: Path) -> None:
    """The words of test entities are those of another value."""
    given = []
    for number in range(60):
        split = ("train", "train", "validation", "test")[number // 3 % 4]
        worded = line(number + (split == "test"))
        given.append({**line(number), "split": split, "evidence": worded["evidence"]})
        for place, item in enumerate(given[-1]["evidence"]):
            item["evidence_id"] = f"{number}-{place}"
    file = write_lines(tmp_path / "lost.jsonl", given)
    words = ("--seeds", "1,2", "--max-epochs", 30, *SMALL, "--no-report")
    output = lpf.json("train", file, *words)
    assert output["beats_class_shares"] == {"level": False}
    sentence = output["cautions"][0]
    assert output["not_better_than_class_shares"] == [sentence]
    start = "level: not better than the class shares"
    assert sentence.startswith(start)
    for shown in (lpf("train", file, *words), lpf("models", "show")):
        assert shown.stdout.startswith(start)
        assert shown.stdout.count(start) == (1 if "Warnings" in shown.stdout else 2)
    document = lpf.json("models", "list")["models"][0]["held_out"]
    assert document["beats_class_shares"] == {"level": False}
    assert document["class_shares_nll"] < document["nll"]
    assert "is not better than the class shares: level" in lpf("models", "list").stdout
    assert lpf("models", "card").stdout.splitlines()[2] == f"**{sentence}**"


def test_options_without_effect_on_few_entities_are_reported(lpf, few: Path) -> None:
    words = ("train", few, "--max-epochs", 3, *SMALL, "--no-report", "--members", 2)
    assert lpf.json(*words, "--seeds", "1,2")["ignored"] == []
    output = lpf.json(*words, "--seeds", "1,2,3", "--patience", 2)["ignored"]
    assert output == ["--patience", "1 of 3 --seeds (members: 2)"]
    shown = flat(lpf(*words, "--seeds", "1,2,3", "--patience", 2))
    assert "not used --patience, 1 of 3 --seeds (members: 2): few entities" in shown
    shown = flat(lpf(*words, "--seeds", "1,2", "--verbose"))
    assert "Seeds, best first, scored on held-out items of folds" in shown


def test_patience_is_not_reported_as_ignored_with_splits(lpf, data: Path) -> None:
    assert lpf.json("train", data, *QUICK, "--patience", 2)["ignored"] == []


def test_one_seed_has_no_spread(lpf, data: Path) -> None:
    words = ("train", data, "--max-epochs", 2, *SMALL, "--no-report", "--verbose")
    assert "±" not in lpf(*words, "--single", 3).stdout
    assert "±" not in lpf("models", "card").stdout
    assert "±" in lpf(*words, "--seeds", "1,2").stdout


def test_the_next_command_can_be_run(lpf, data: Path, tmp_path: Path) -> None:
    output = lpf.json("train", data, *QUICK)
    assert output["next"] == "lpf ingest EVIDENCE, then lpf query ENTITY level"
    assert output["next"] in lpf("train", data, *QUICK).stdout
    evidence = tmp_path / "evidence.csv"
    evidence.write_text("evidence_id,entity_id,predicate,text\nE1,C1,level,low low\n")
    lpf("ingest", evidence)
    assert lpf.json("train", data, *QUICK)["next"] == "lpf query ENTITY level"
    kept = lpf.json("train", data, *QUICK, "--no-use", "--beta", 0.5)
    assert kept["next"] == f"lpf models use {kept['version']}"


def test_a_table_without_labels_is_refused(lpf, tmp_path: Path) -> None:
    table = tmp_path / "evidence.CSV"
    table.write_text("evidence_id,entity_id,text\n")
    assert "label" in lpf.refused("train", table)["message"]


def test_the_model_that_answered_before_is_compared(lpf, data: Path, tmp_path: Path) -> None:
    first = lpf.json("train", data, *QUICK)
    assert first["earlier"] is None
    assert lpf.json("train", data, *QUICK)["earlier"] is None  # it is the same
    losses = {
        "earlier": pytest.approx(first["scores"]["test/spn"]["level"]["nll"], abs=1e-6),
    }
    shown = flat(lpf("train", data, *QUICK, "--beta", 0.5))
    second = lpf.json("models", "show")["version"]
    assert f"before {first['version']}: NLL of level" in shown
    assert f"back lpf models use {first['version']}" in shown
    lpf("models", "use", first["version"])
    again = lpf.json("train", data, *QUICK, "--beta", 0.5)
    assert again["version"] == second
    output = again["earlier"]
    assert (output["version"], output["judged_on"]) == (first["version"], "test/spn")
    assert output["same_data"]
    assert output["nll"]["level"]["earlier"] == losses["earlier"]
    still = flat(lpf("train", data, *QUICK, "--beta", 0.2, "--no-use"))
    assert f"still {second}: NLL of level" in still
    assert "back" not in still
    other = write_lines(tmp_path / "other.jsonl", lines(66))
    assert lpf.json("train", other, *QUICK)["earlier"]["nll"] == {}
    assert "not scored on the same data" in flat(lpf("train", data, *QUICK, "--beta", 0.3))


def test_data_of_the_same_name_may_differ(lpf, data: Path) -> None:
    lpf("train", data, *QUICK)
    write_lines(data, lines(66))
    output = lpf.json("train", data, *QUICK)["earlier"]
    assert (bool(output["nll"]), output["same_data"]) == (True, False)


def test_the_list_distinguishes_models(lpf, data: Path, few: Path) -> None:
    linear = (
        "--seeds",
        "1,2",
        "--max-epochs",
        1,
        "--hidden",
        8,
        "--latent-width",
        4,
        "--no-report",
    )
    one = lpf.json("train", data, *QUICK)
    two = lpf.json("train", few, *linear)
    listed = {model["version"]: model for model in lpf.json("models", "list")["models"]}
    made = listed[one["version"]]
    assert (made["reading"], made["entities"]) == ("networks", 60)
    assert made["held_out"]["judged_on"] == "test/spn"
    scores = one["scores"]["test/spn"]["level"]
    assert made["held_out"]["nll"] == pytest.approx(scores["nll"], abs=1e-6)
    assert made["held_out"]["accuracy"] == pytest.approx(scores["accuracy"], abs=1e-6)
    other = listed[two["version"]]
    assert (other["reading"], other["entities"]) == ("linear", 12)
    assert other["held_out"]["judged_on"] == "out of fold/spn"
    shown = lpf("models", "list").stdout
    assert all(len(each) <= 80 for each in shown.splitlines()), shown
    head, *rows = shown.splitlines()
    for heading in ("version", "name", "created", "model", "entities", "accuracy", "NLL"):
        assert heading in head
    (row,) = [each for each in rows if one["version"] in each and "shares" not in each]
    for cell in (made["made"][:10], "networks", "60", f"{scores['nll']:.4f}"):
        assert cell in row
    assert "on test entities" in shown


def test_a_model_that_cannot_be_loaded_is_listed_with_what_is_wrong(lpf, data: Path) -> None:
    version = lpf.json("train", data, *QUICK)["version"]
    card = lpf.folder / "models" / version / "card.json"
    card.write_text(card.read_text().replace("data", "date"))
    shown = lpf("models", "list").stdout
    assert "broken" in shown
    assert f"{version} cannot be loaded" in shown


def test_the_card_of_few_entities_describes_folds(lpf, few: Path) -> None:
    words = ("--seeds", "5,4", "--max-epochs", 2, "--hidden", 8, "--latent-width", 4, "--no-report")
    output = lpf.json("train", few, *words)
    assert output["reading"]["chosen"] == "linear"
    card = lpf("models", "card").stdout
    assert "few: 12 entities, all trained on, judged in folds, 24 items" in card
    assert "members: one for each of the seeds [5, 4]" in card
    assert "best first" not in card
    assert "item_validation_accuracy" not in card
    assert "- level: low, medium, high" in card
    fitted = output["fitted"]["level"]
    assert f"{fitted['nll_after']:.4f} after, {fitted['nll_cross_fitted']:.4f} on held-out" in card
    assert lpf.json("models", "card")["predicates"] == {"level": list(LEVELS)}
    shown = flat(lpf("models", "show", "--verbose"))
    assert "model linear" in shown
    assert f"NLL {fitted['nll_after']:.4f} on these, {fitted['nll_cross_fitted']:.4f} on" in shown
    assert "what the networks say" not in shown


def test_more_items_than_a_question_uses_are_stated(lpf, data: Path, tmp_path: Path) -> None:
    output = lpf.json("train", data, *QUICK)
    assert (output["data"]["most_items"], output["top_k"]) == (2, 100)
    assert "a question uses the best" not in lpf("train", data, *QUICK).stdout
    settings = tmp_path / "own" / "lpf.toml"
    settings.write_text(settings.read_text() + "\n[query]\ntop_k = 1\n")
    shown = flat(lpf("train", data, *QUICK))
    assert "scores use all items of an entity, up to 2; a question uses the best 1" in shown


def test_credibility_without_effect_is_reported(lpf, tmp_path: Path, data: Path) -> None:
    """All items have the same credibility, so it cannot say which of them are right."""
    found = lpf.json("train", data, *QUICK)["credibility"]["level"]
    assert found["has_effect"] is False
    assert found["items"] == 120
    assert "credibility has" in flat(lpf("train", data, *QUICK))
    without = [one | {"evidence": _unrated(one["evidence"])} for one in lines(60)]
    unrated = write_lines(tmp_path / "unrated.jsonl", without)
    found = lpf.json("train", unrated, *QUICK)["credibility"]["level"]
    assert (found["has_effect"], found["items"]) == (False, 0)
    assert "credibility" not in lpf("train", unrated, *QUICK).stdout


def test_credibility_that_has_an_effect_is_not_mentioned() -> None:
    from lpf.cli.train_view import _credibility

    one = {"has_effect": True, "slope": 0.7, "items": 9}
    assert list(_credibility({"level": one})) == []
    assert len(list(_credibility({"level": {**one, "has_effect": False, "slope": 0.0}}))) == 1


def test_the_output_says_if_the_prior_was_learned(lpf, tmp_path: Path, data: Path) -> None:
    assert lpf.json("train", data, *QUICK)["prior"]["from"] == "schema"
    assert "circuit" not in lpf("train", data, *QUICK).stdout
    learn_from_rows(lpf.folder, Schema((Predicate("level", LEVELS),)), [{"level": "high"}] * 20)
    found = lpf.json("train", data, *QUICK)["prior"]
    assert found["from"] == "circuit"
    assert found["values"]["level"]["high"] > 0.9
    assert "prior of the learned circuit" in flat(lpf("train", data, *QUICK))


def _unrated(evidence: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in item.items() if k != "credibility"} for item in evidence]


def test_the_output_says_why_the_reader_was_not_tuned(
    lpf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tiny_reader(tmp_path / "reader")
    monkeypatch.setattr(wiring, "claim_reader", lambda inner: PairReader(inner, reader.stance))
    claims = write_lines(tmp_path / "claims.jsonl", lines(60, claim="All is well."))
    quick = ("--seeds", "1", "--max-epochs", 2, *SMALL[:4], "--no-aggregator", "--no-report")
    shown = flat(lpf("train", claims, *quick))
    assert f"{ladder.FEWEST_LABELS:,}" in shown
    document = lpf.json("train", claims, *quick, "--budget", "0")
    assert document["config"]["budget"] == 0.0
    assert document["tuning"]["not_tried"] == "the budget is 0"


def test_the_output_shows_what_was_tuned_and_chosen(
    lpf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    reader = tiny_reader(tmp_path / "reader")
    monkeypatch.setattr(wiring, "claim_reader", lambda inner: PairReader(inner, reader.stance))
    claims = write_lines(tmp_path / "claims.jsonl", lines(60, claim="All is well."))
    quick = ("--seeds", "1", "--max-epochs", 2, *SMALL[:4], "--no-aggregator", "--no-report")
    shown = flat(lpf("train", claims, *quick, "--budget", "10m"))
    assert "two passes: held-out NLL" in shown
    assert ", chosen" in shown
    document = lpf.json("train", claims, *quick)
    tuning = document["tuning"]
    assert [one["name"] for one in tuning["rungs"]] == ["two passes"]
    assert tuning["sha256"][:16] in document["reader"]
    assert tuning["reader"]["tuned_on"]["entities"] > 20
