"""train, models show, models card, init --domain: from labelled data to a model that answers."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from labelled_workspaces import LEVELS, WordReader, line, lines, write_lines
from lpf.cli.main import app
from lpf.cli.progress import TrainingDisplay, best_seed, sparkline
from lpf.schema import Predicate, Schema
from lpf.training.history import Epoch
from lpf.workspace import Workspace

SMALL = ("--hidden", 8, "--latent-width", 4, "--model", "networks")
QUICK = ("--seeds", "1,2", "--max-epochs", 3, *SMALL, "--no-report")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "data.jsonl", lines(60))


@pytest.fixture
def lpf(lpf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Commands in a workspace that asks for a level and reads words."""
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
    Workspace.create(tmp_path / "own", Schema((Predicate("level", LEVELS),))).close()
    return type(lpf)(tmp_path / "own")


def test_the_trained_model_is_shown_and_answers(lpf, data: Path) -> None:
    words = ("train", data, "--seeds", "1,2", "--max-epochs", 3, *SMALL)
    shown = lpf(*words).stdout
    for part in (
        *("data: 60 entities, 120 items", "train 42 · validation 9 · test 9"),
        *("validation", "test", "spn", "learned", "NLL", "Brier", "ECE"),
        *("Warnings", "fitted on 9 entities only", "answers from now on", "lpf query ENTITY level"),
    ):
        assert part in shown, part
    # Three epochs are too few to learn anything, so that comes first.
    assert shown.startswith("level: not better than the class shares")
    for part in ("Seeds, best first", "rho", "epsilon", "±"):
        assert part not in shown, part
    details = lpf(*words, "--verbose").stdout
    for part in (
        *("Seeds, best first", "all seeds", "±", "selected"),
        *("temperature", "rho", "epsilon", "slope", "learned temperature"),
    ):
        assert part in details, part
    with Workspace.open(lpf.folder) as space:
        active = space.models.active()
    assert active in shown
    assert (lpf.folder / "reports" / active / "training.html").is_file()
    assert list((lpf.folder / "searches" / "features").glob("*.npy"))


def test_the_same_command_again_gives_the_same_model(lpf, data: Path, tmp_path: Path) -> None:
    words = (
        "train",
        data,
        "--seeds",
        "1,2",
        "--max-epochs",
        2,
        *SMALL,
        "--no-use",
        "--name",
        "mine",
    )
    words = (*words, "--report", tmp_path / "report")
    first, second = lpf.json(*words), lpf.json(*words)
    assert first == second
    assert not first["active"]
    assert first["name"] == "mine"
    assert Path(first["report"]).parent == tmp_path / "report"
    kept = lpf("train", data, *QUICK, "--no-use")
    assert "lpf models use" in kept.stdout
    other = lpf.json("train", data, *QUICK, "--beta", 0.5)
    assert other["version"] != first["version"]
    assert other["active"]


def test_the_document_holds_all_that_is_shown(lpf, data: Path) -> None:
    output = lpf.json("train", data, *QUICK, "--members", 1)
    assert [one["member"] for one in output["seeds"]] == [True, False]
    assert {one["seed"] for one in output["seeds"]} == {1, 2}
    assert all(one["epochs"] == 3 for one in output["seeds"])
    best = output["seeds"][0]
    assert output["spread"]["accuracy"]["selected"] == best["accuracy"]
    numbers = output["fitted"]["level"]["numbers"]
    assert numbers["learned_temperature"] > 0
    assert set(output["fitted"]["level"]["meaning"]) == {
        *("temperature", "rho", "epsilon", "slope", "min_credibility", "learned_temperature")
    }
    places = ("validation/spn", "validation/learned", "test/spn", "test/learned")
    assert set(output["scores"]) == set(places)
    for place in places:
        scores = output["scores"][place]["level"]
        assert scores["entities"] == 9
        assert scores["calibrated"] == (scores["ece"] <= scores["ece_null"])
    assert output["config"]["max_epochs"] == 3
    assert output["config"]["hidden"] == [8]
    assert output["cautions"]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--paper", "--max-epochs", 1], "patience", 5),
        (["--paper", "--max-epochs", 1, "--patience", 2], "patience", 2),
        (["--max-epochs", 1, "--balance", "always"], "balance", "always"),
        (["--max-epochs", 1, "--weight-decay", 0.1], "weight_decay", 0.1),
        (["--max-epochs", 1, "--learning-rate", 0.01], "learning_rate", 0.01),
        (["--max-epochs", 1, "--deterministic"], "deterministic", True),
        (["--max-epochs", 1, "--no-aggregator"], "aggregator", None),
    ],
)
def test_options_reach_the_training(
    words: list, field: str, value: object, lpf, data: Path
) -> None:
    output = lpf.json("train", data, "--single", 5, *SMALL, "--no-report", *words)
    assert output["config"][field] == value
    assert [one["seed"] for one in output["seeds"]] == [5]
    assert output["config"]["members"] == 1


def test_unfreezing_reaches_the_second_stage(lpf, data: Path) -> None:
    output = lpf.json("train", data, *QUICK, "--unfreeze")
    assert output["config"]["stage_two"]["unfreeze"]


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("seven", 7), ("fifteen", 15), ("8,", 1)])
def test_seeds_are_a_name_a_number_or_a_list(text: str, count: int, lpf, data: Path) -> None:
    words = ("--max-epochs", 1, *SMALL, "--no-aggregator", "--no-report")
    output = lpf.json("train", data, "--seeds", text, *words)
    assert len(output["seeds"]) == count
    assert sum(one["member"] for one in output["seeds"]) == min(count, 5)


BAD_CALLS = {
    "no such data": (["nonsense"], "neither a file nor one of the domains"),
    "another domain": (["compliance"], "lpf init DIR --domain compliance"),
    "unknown predicate": (["{data}", "--predicate", "colour"], "'colour' is not in the schema"),
    "seeds in words": (["{data}", "--seeds", "many"], "--seeds: must be seven, fifteen"),
    "too many seeds": (["{data}", "--seeds", "42"], "--single 42"),
    "doubled seeds": (["{data}", "--seeds", "1,1"], "different whole numbers"),
    "no seeds": (["{data}", "--seeds", ","], "--seeds"),
    "seeds and single": (["{data}", "--seeds", "1,2", "--single", "3"], "not both"),
    "members and single": (["{data}", "--members", "2", "--single", "3"], "Leave --members out"),
    "hidden in words": (["{data}", "--hidden", "wide"], "--hidden: must be whole numbers"),
    "no epochs": (["{data}", "--max-epochs", "0"], "--max-epochs: must be from 1"),
    "no such model": (["{data}", "--reading", "linear"], "--model: must be one of"),
    "grid with widths": (["{data}", "--grid", "--latent", "8"], "--grid: tries values of --latent"),
    "nothing to unfreeze": (["{data}", "--unfreeze", "--no-aggregator"], "--no-aggregator out"),
    "report and none": (["{data}", "--report", "r", "--no-report"], "--no-report: contradicts"),
    "no labels here": ([], "no labelled evidence"),
}


@pytest.mark.parametrize(("words", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_call_that_is_wrong_is_refused(words: list[str], message: str, lpf, data: Path) -> None:
    assert message in lpf.error("train", *(word.format(data=data) for word in words))
    assert lpf.json("models", "list") == {"models": []}


@pytest.mark.parametrize("option", ["--preset", "--balance", "--model"])
def test_choices_are_checked(lpf, data: Path, option: str) -> None:
    error = lpf.refused("train", data, option, "nonsense")
    assert (error["kind"], error["field"]) == ("UsageError", option)


def test_earlier_names_of_options_still_work(lpf, data: Path) -> None:
    old = ("--hidden", 8, "--latent", 4, "--epochs", 1, "--reading", "chosen", "--single", 3)
    config = lpf.json("train", data, *old, "--no-report")["config"]
    assert (config["latent_width"], config["max_epochs"]) == (4, 1)
    shown = lpf("train", "--help").stdout
    for name in ("--latent ", "--epochs", "--reading"):
        assert name not in shown


BAD_DATA = {
    "unknown value": ([*lines(60), line(61, label="huge")], "data.jsonl, line 61: label: 'huge'"),
    "doubled id": ([*lines(60), line(3)], "line 61: entity_id: 'C0003'"),
    "no evidence at all": ([line(n, evidence=[]) for n in range(60)], "both evidence and a label"),
    "single class": (lines(60, label="low"), "all entities have the value 'low'"),
    "few of a single class": (lines(9, label="low"), "fewer than 2 entities are labelled"),
}


@pytest.mark.parametrize(("given", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_data_that_cannot_be_used_is_refused_with_the_place(
    given: list, message: str, lpf, tmp_path: Path
) -> None:
    file = write_lines(tmp_path / "data.jsonl", given)
    assert message in lpf.error("train", file, *QUICK)


def test_an_interrupt_says_how_to_continue(
    lpf, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lpf.training.stage_one import StageOne

    whole = lpf.json("train", data, *QUICK, "--no-use")["version"]
    for search in (lpf.folder / "searches").glob("*/search.*"):
        search.unlink()
    one_epoch, done = StageOne.one_epoch, []

    def interrupted(self: StageOne, state: Any) -> None:
        done.append(state.epoch)
        if len(done) == 2:
            raise KeyboardInterrupt
        one_epoch(self, state)

    monkeypatch.setattr("lpf.training.search.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(StageOne, "one_epoch", interrupted)
    output = lpf("train", data, *QUICK, code=130)
    assert "the same command continues from its checkpoint" in output.stderr
    assert lpf.json("train", data, *QUICK)["version"] == whole
    assert done == [0, 1, 1, 2]


def test_splits_of_a_file_can_be_replaced(lpf, tmp_path: Path) -> None:
    given = [{**one, "split": "test"} for one in lines(60)]
    data = write_lines(tmp_path / "all_test.jsonl", given)
    assert "'train' has no entities" in lpf.error("train", data, *QUICK)
    assert lpf.json("train", data, "--resplit", *QUICK)["active"]


def test_a_head_is_added_to_a_model_and_its_answers_stay(
    lpf, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lpf.json("train", data, *QUICK)["version"]
    settings = lpf.folder / "lpf.toml"
    extra = '[[predicates]]\nname = "outcome"\nvalues = ["bad", "good"]\n'
    settings.write_text(settings.read_text() + extra)
    labelled = [
        {**one, "label": None, "labels": {"outcome": "bad" if one["label"] == "low" else "good"}}
        for one in lines(60)
    ]
    both = write_lines(tmp_path / "outcomes.jsonl", labelled)
    added = lpf.json("train", both, "--onto", first, "--max-epochs", 3, "--no-report")
    with Workspace.open(lpf.folder) as space:
        before, after = space.models.load(first), space.models.load(added["version"])
    assert [head.name for head in after.config.predicates] == ["level", "outcome"]
    for name, tensor in before.tensors.items():
        np.testing.assert_array_equal(tensor, after.tensors[name])
    again = lpf("train", data, "--predicate", "level", "--onto", first, code=2)
    assert "one predicate is added at a time" in " ".join(again.stderr.split())
    grid = lpf("train", both, "--onto", first, "--grid", code=2)
    assert "leave out seeds, single and grid" in " ".join(grid.stderr.split())


def test_few_entities_are_trained_on_too(lpf, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "few.jsonl", lines(12))
    output = lpf.json("train", file, *QUICK)
    assert output["data"]["few"]
    assert output["data"]["splits"] == {}
    assert "in folds" in lpf("train", file, *QUICK).stdout


def test_models_are_shown_with_their_card(lpf, data: Path) -> None:
    assert "no model answers yet" in lpf.error("models", "show")
    trained = lpf.json("train", data, *QUICK)
    version = trained["version"]
    document = lpf.json("models", "show")
    assert document["version"] == version
    assert document["active"]
    assert document["seeds"] == [one["seed"] for one in trained["seeds"]]
    fitted = trained["fitted"]["level"]["numbers"]
    assert document["fitted"]["level"]["temperature"] == fitted["temperature"]
    assert document["fitted"]["level"]["entities"] == 9
    assert document["metrics"]["level/test/spn/entities"] == 9
    shown = lpf("models", "show", version).stdout
    for part in (version, "answers", "16-8-4, variational", "Scores for level", "test", "learned"):
        assert part in shown, part
    assert "rho" in lpf("models", "show", "--verbose").stdout
    card = lpf("models", "card").stdout
    assert card.startswith("# data\n")
    assert "## Unsuitable use" in card
    assert lpf.json("models", "card", version)["card"]["name"] == "data"
    assert "has no model 'nonsense'" in lpf.error("models", "card", "nonsense")


def test_a_model_without_anything_fitted_is_shown(pristine: Path) -> None:
    done = CliRunner().invoke(app, ["models", "show", "--workspace", str(pristine)])
    assert done.exit_code == 0, done.output
    assert "robust mode uses its defaults" in done.stdout


def test_init_takes_the_predicates_of_a_domain(tmp_path: Path) -> None:
    from lpf.domains import load_domain

    folder = tmp_path / "try"
    done = CliRunner().invoke(app, ["init", str(folder), "--domain", "compliance"])
    assert done.exit_code == 0, done.output
    assert "lpf train compliance" in done.stdout
    made, declared = Workspace.open(folder).schema, load_domain("compliance").schema()
    assert [(one.name, one.values, one.prior) for one in made] == [
        (one.name, one.values, one.prior) for one in declared
    ]
    assert made.relations == declared.relations


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--domain", "nonsense"], "unknown domain"),
        (["--domain", "compliance", "--predicate", "a=b,c"], "--domain: defines the whole schema"),
        (["--domain", "compliance", "--schema", "s.toml"], "--domain: defines the whole schema"),
    ],
)
def test_init_refuses_a_wrong_domain(words: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "try"), *words])
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "try" / "lpf.toml").exists()


def test_a_domain_is_generated_and_trained_on(
    tmp_path: Path, lpf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from lpf.domains.parameters import PRESETS

    small = {name: replace(one, entities=90, items=2) for name, one in PRESETS.items()}
    monkeypatch.setattr("lpf.domains.parameters.PRESETS", small)
    there = type(lpf)(tmp_path / "try")
    CliRunner().invoke(app, ["init", str(there.folder), "--domain", "compliance"])
    output = there.json("train", "compliance", *QUICK)
    assert output["predicates"] == ["compliance_level"]
    assert output["data"]["entities"] == 90
    hard = there.json("train", "compliance", *QUICK, "--preset", "hard", "--data-seed", 7)
    assert hard["data"]["digest"] != output["data"]["digest"]
    assert there.json("evidence", "list")["evidence"] == []


def test_the_live_display_shows_epochs_and_the_best_seed() -> None:
    def epoch(loss: float, accuracy: float) -> Epoch:
        return Epoch(*[0.0] * 4, loss, 0.0, 0.0, accuracy, 0.0)

    class State:
        seeds, active = (1, 2, 3), [0, 2]
        epochs = ([epoch(1.0, 0.5), epoch(0.5, 0.9)], [epoch(0.4, 0.8)], [])

    assert best_seed(State.epochs) is State.epochs[0]
    display = TrainingDisplay()
    display.reading(50, 100)
    display.status("training all seeds together")
    display.epoch(2, 100, State())  # type: ignore[arg-type]
    written = StringIO()
    Console(width=80, file=written).print(display)
    shown = written.getvalue()
    for part in ("training all seeds", "2/100 epochs", "2 of 3 still running", "0.9000", "█▁"):
        assert part in shown, part
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert len(sparkline([float(n) for n in range(100)], 40)) == 40


def test_importing_the_commands_imports_no_torch() -> None:
    program = (
        "import sys\nimport lpf.cli.main, lpf.workspace, lpf.cli.progress\n"
        "assert 'torch' not in sys.modules and 'lpf.training.trainer' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_table_is_read_as_the_options_say(lpf, tmp_path: Path) -> None:
    rows = [
        f"{one['entity_id']};{item['text']};{one['label']};0{1 + n % 9}/04/2026"
        for n, one in enumerate(lines(12))
        for item in one["evidence"]
    ]
    table = tmp_path / "table.csv"
    table.write_bytes("\n".join(["Kunde;text;label;timestamp", *rows]).encode("utf-16"))
    assert "--map" in lpf.refused("train", table, *QUICK)["hint"]
    words = ("--map", "Kunde=entity_id", "--date-format", "DD/MM/YYYY", "--encoding", "utf-16")
    assert lpf.json("train", table, *words, *QUICK)["data"]["few"]


@pytest.mark.parametrize("option", ["--map=a=label", "--encoding=utf-8", "--sheet=a"])
def test_options_of_a_table_are_refused_without_one(lpf, data: Path, option: str) -> None:
    flag = option.partition("=")[0]
    for named in ((), ("compliance",), (data,)):
        assert lpf.refused("train", *named, option, *QUICK)["field"] == flag
