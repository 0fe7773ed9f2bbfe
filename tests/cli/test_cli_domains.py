"""``lpf domains``: lists, shown domains, written files, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lpf.cli.main import app
from lpf.datasets import read_dataset
from lpf.domains import domain_names, load_domain, perfect_answers
from lpf.ingest import read_facts


def run(*words: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["domains", *map(str, words)])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*words: object) -> str:
    """What is said of a wrong call; its JSON says the same."""
    message = run(*words, code=2).stderr
    document = json.loads(run(*words, "--json", code=2).stdout)
    assert document["error"]["message"] in message
    return message


def test_list_names_every_domain() -> None:
    shown = run("list").stdout
    listed = json.loads(run("list", "--json").stdout)["domains"]
    assert tuple(one["name"] for one in listed) == domain_names()
    assert all(one["name"] in shown for one in listed)
    assert listed[1]["values"] == ["low", "medium", "high"]
    assert (listed[1]["aspects"], listed[1]["sentences"]) == (6, 516)


@pytest.mark.parametrize("name", domain_names())
def test_show_gives_a_sentence_of_every_kind(name: str) -> None:
    shown = run("show", name).stdout
    document = json.loads(run("show", name, "--json").stdout)
    assert document["question"] in shown
    for field in document["fields"]:
        assert field["name"] in shown
    for aspect in document["aspects"]:
        assert f"About {aspect['name']}" in shown
        assert len(aspect["examples"]) == 5


def test_generate_writes_a_data_set_and_its_facts(tmp_path: Path) -> None:
    file, facts = tmp_path / "out.jsonl", tmp_path / "facts.jsonl"
    words = (
        *("generate", "finance", file, "--preset", "hard", "--seed", 7, "--entities", 60),
        *("--items", 4, "--extra-test", 20, "--prefix", "x-", "--set", "fact_share=0.5"),
        *("--set", "missing=0", "--facts", facts, "--json"),
    )
    document = json.loads(run(*words).stdout)
    made = read_dataset(file, schema=load_domain("finance").schema())
    assert document["digest"] == made.digest
    assert (
        (document["entities"], document["items"]) == (len(made), len(list(made.items))) == (80, 320)
    )
    assert document["values"] == {"low_risk": 28, "medium_risk": 32, "high_risk": 20}
    assert sum(document["splits"].values()) == 80
    assert document["splits"]["test"] >= 28
    assert document["facts"] == len(list(read_facts(facts))) > 20
    assert document["parameters"]["fact_share"] == 0.5
    assert made.entities[0].entity_id == "x-B0001"
    assert perfect_answers(made).shape == (80, 3)


def test_generate_reports_what_it_wrote(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    shown = run("generate", "legal", file, "--entities", 40).stdout
    assert "40 entities with 200 items" in shown.replace("\n", " ")
    assert "train 28 · validation 6 · test 6" in shown


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    file, facts = tmp_path / "out.jsonl", tmp_path / "facts.jsonl"
    facts.write_text("mine")
    message = refused("generate", "legal", file, "--facts", facts)
    assert "facts.jsonl: exists already" in message
    assert "--force" in message
    assert not file.exists()
    assert facts.read_text() == "mine"
    run("generate", "legal", file, "--entities", 40, "--facts", facts, "--force")
    assert facts.read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("generate", "astrology"), "unknown domain 'astrology'"),
        (("generate", "legal", "--set", "colour=1"), "generator.colour: unknown parameter"),
        (("generate", "legal", "--set", "pull"), "must be NAME=VALUE"),
        (("generate", "legal", "--items", "0"), "generator.items: must be from 1"),
        (("generate", "legal", "--seed", "-1"), "--seed"),
        (("generate", "legal", "--extra-test", "-1"), "--extra-test"),
    ],
)
def test_a_wrong_call_writes_nothing(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    assert message in refused(*words, file)
    assert not file.exists()


def test_presets_are_checked(tmp_path: Path) -> None:
    done = run("generate", "legal", tmp_path / "out.jsonl", "--preset", "easy", "--json", code=2)
    assert json.loads(done.stdout)["error"]["field"] == "--preset"


def test_show_refuses_an_unknown_domain() -> None:
    assert "unknown domain 'astrology'" in refused("show", "astrology")
