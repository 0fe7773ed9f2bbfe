"""``lpf evaluate``: the document, the table, and what is refused before anything is run."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from language_model_server import ChatServer, Received, Sent, completion
from lpf.baselines import METHODS as OURS
from lpf.cli.evaluate import parsed_methods, parsed_seeds
from lpf.cli.main import app
from lpf.errors import ConfigError
from lpf.evaluation.evaluator import Evaluator
from lpf.evaluation.plan import EvaluationPlan, chosen_methods
from lpf.evaluation.result_store import ResultStore
from small_specs import all_three, entities, in_splits, kept_folder, times, written
from tiny_transformer import tiny_transformer

METHODS = ("lpf_robust", "logistic_mean", "prior")
BRIEF = "method accuracy NLL ECE ms"
HEADINGS = "method accuracy NLL Brier ECE null F1 ms"
MEASURES = {"accuracy", "nll", "brier", "ece", "ece_null", "macro_f1", "runtime_ms"}


@pytest.fixture(autouse=True)
def search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command adds the current folder to it."""
    monkeypatch.setattr(sys, "path", [*sys.path])


def run(*words: object, code: int = 0, columns: int = 80) -> Any:
    line = ["evaluate", *map(str, words)]
    done = CliRunner().invoke(app, line, env={"COLUMNS": str(columns)})
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*words: object) -> str:
    """What is said of a wrong call; its JSON says the same."""
    done = run(*words, code=2)
    assert "Traceback" not in done.stderr
    document = json.loads(run(*words, "--json", code=2).stdout)
    assert document["error"]["kind"]
    assert document["error"]["message"] in done.stderr
    return str(done.stderr)


@pytest.fixture(scope="module")
def folder() -> Path:
    """With a file that has its own splits, and one evaluation of it."""
    home = kept_folder("evaluate")
    written(home / "parts.jsonl", in_splits(entities(60, items=1), all_three))
    return home


@pytest.fixture(scope="module")
def words(folder: Path) -> tuple[object, ...]:
    chosen = ("--methods", ",".join(METHODS), "--seeds", "1")
    return (folder / "parts.jsonl", *chosen, "--keep", folder / "kept", "--workers", 1)


@pytest.fixture(scope="module")
def document(words: tuple[object, ...]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    return found


def test_the_document_has_the_promised_shape(document: dict[str, Any]) -> None:
    assert document["dataset"] == "parts"
    assert tuple(document["methods"]) == METHODS
    for numbers in document["methods"].values():
        assert numbers.keys() >= MEASURES
        assert all(isinstance(numbers[name], float) for name in MEASURES)
        assert (numbers["error"], numbers["notes"]) == (None, [])
        assert numbers["accuracy_sd"] is None  # of one seed there is none
        assert sum(map(sum, numbers["confusion"])) == 12
    assert document["methods"]["lpf_robust"]["accuracy"] > 0.6
    assert document["methods"]["prior"]["accuracy"] == pytest.approx(0.5)
    assert (document["asked"], document["folds"]) == (12, 0)


def test_a_repeated_evaluation_computes_nothing(
    document: dict[str, Any], words: tuple[object, ...], folder: Path
) -> None:
    before = times(folder / "kept")
    assert json.loads(run(*words, "--json").stdout) == document
    assert times(folder / "kept") == before


def test_the_table_fits_80_columns_and_names_every_method(
    document: dict[str, Any], words: tuple[object, ...]
) -> None:
    shown = run(*words, "--verbose").stdout
    assert all(len(line) <= 80 for line in shown.splitlines()), shown
    assert "parts · label: 12 test entities, the file's own test split, 1 repetition" in shown
    together = " ".join(shown.split())
    assert "robust" in together
    assert "Class shares" in together
    assert HEADINGS in together
    assert "No room for" not in shown
    for numbers in document["methods"].values():
        assert f"{numbers['accuracy']:.3f}" in shown
        assert f"{numbers['nll']:.3f}" in shown
    rows = [line.split() for line in shown.splitlines() if line.startswith("  ")]
    ends = [row[-1] for row in rows if row[-1][0].isdigit()]
    measured = [numbers["runtime_ms"] for numbers in document["methods"].values()]
    assert sorted(map(float, ends)) == pytest.approx(sorted(measured), abs=0.006, rel=0.006)


def test_the_verdict_leads_and_statistics_are_shown_on_request(
    document: dict[str, Any], words: tuple[object, ...]
) -> None:
    brief, verbose = (" ".join(run(*words, *more).stdout.split()) for more in ((), ("--verbose",)))
    for shown in (brief, verbose):
        assert shown.index("Lowest NLL:") < shown.index("method accuracy")
        assert "the best method without LPF, Logistic regression" in shown
    assert BRIEF in brief
    assert "Holm" not in brief
    assert "--verbose" in brief
    assert HEADINGS in verbose


def test_hidden_columns_of_a_narrow_terminal_are_named(
    document: dict[str, Any], words: tuple[object, ...]
) -> None:
    shown = run(*words, "--verbose", columns=66).stdout
    (heading,) = [line for line in shown.splitlines() if line.strip().startswith("method")]
    assert "Brier" not in heading
    assert heading.split()[-1] == "ms"
    assert "No room for Brier: a wider terminal or --json shows all." in " ".join(shown.split())
    assert "No room for Brier and ms:" in " ".join(
        run(*words, "--verbose", columns=60).stdout.split()
    )


def test_several_seeds_have_a_spread_and_unused_networks_are_not_trained(tmp_path: Path) -> None:
    path = written(tmp_path / "parts.jsonl", in_splits(entities(60, items=1), all_three))
    words = (
        path,
        "--methods",
        "logistic_mean,prior",
        "--seeds",
        "4,5",
        "--keep",
        tmp_path / "kept",
    )
    found = json.loads(run(*words, "--workers", 1, "--json").stdout)
    assert found["seeds"] == [4, 5]
    for numbers in found["methods"].values():  # neither depends on the seed
        assert (numbers["runs"], numbers["accuracy_sd"], numbers["nll_sd"]) == (2, 0, 0)
    assert not (tmp_path / "kept" / "models").exists()
    shown = run(*words, "--workers", 1).stdout
    for numbers in found["methods"].values():
        assert f"{numbers['nll']:.3f}±.000" in shown
    assert BRIEF in " ".join(shown.split())
    assert all(len(line) <= 80 for line in shown.splitlines()), shown


def test_folds_and_a_protected_field(tmp_path: Path) -> None:
    rows = [
        {
            **row,
            "group_id": f"g{place // 2}",
            "fields": {"region": ("north", "south")[place // 2 % 2]},
        }
        for place, row in enumerate(entities(64, items=1))
    ]
    path = written(tmp_path / "regions.jsonl", rows)
    words = (path, "--methods", "prior", "--seeds", 1, "--folds", 3, "--protected", "region")
    found = json.loads(run(*words, "--keep", tmp_path / "kept", "--workers", 1, "--json").stdout)
    assert (found["folds"], found["asked"]) == (3, 64)
    assert set(found["methods"]["prior"]["groups"]) == {"north", "south"}
    shown = run(*words, "--keep", tmp_path / "kept", "--workers", 1).stdout
    assert "3 folds by group" in shown
    for part in ("north", "south"):
        numbers = found["methods"]["prior"]["groups"][part]
        (row,) = [line.split() for line in shown.splitlines() if part in line]
        measured = [numbers[name] for name in ("accuracy", "nll", "mean_confidence")]
        assert row[-3:] == [f"{value:.3f}" for value in measured]
    assert "by region" in shown
    assert all(len(line) <= 80 for line in shown.splitlines()), shown


def test_an_own_method_is_imported_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("coin_method.py").write_text(
        "class Coin:\n"
        "    def fit(self, X, y):\n"
        "        self.classes_ = sorted(set(y))\n"
        "    def predict_proba(self, X):\n"
        "        return [[0.5, 0.5] for _ in X]\n"
        "class Falls(Coin):\n"
        "    def predict_proba(self, X):\n"
        "        raise RuntimeError('it fell over')\n"
    )
    written(Path("parts.jsonl"), in_splits(entities(60, items=1), all_three))
    names = "coin_method:Coin,coin_method:Falls"
    words = ("parts.jsonl", "--methods", names, "--seeds", 1, "--keep", "kept", "--workers", 1)
    found = json.loads(run(*words, "--json").stdout)["methods"]
    assert found["coin_method:Coin"]["nll"] == pytest.approx(0.6931, abs=1e-3)
    assert "it fell over" in found["coin_method:Falls"]["error"]
    shown = run(*words).stdout
    assert "RuntimeError: it fell over" in " ".join(shown.split())
    assert all(len(line) <= 80 for line in shown.splitlines()), shown


def test_an_own_transformer_is_added_and_stored_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny").mkdir()
    tiny_transformer(Path("tiny"))
    written(Path("parts.jsonl"), in_splits(entities(60, items=1), all_three))
    words = ("parts.jsonl", "--methods", "prior", "--seeds", 1, "--keep", "kept", "--workers", 1)
    found = json.loads(run(*words, "--model", "tiny", "--json").stdout)
    assert (found["model"], list(found["methods"])) == ("tiny", ["prior", "transformer"])
    assert found["methods"]["transformer"]["accuracy"] is not None
    before = times(Path("kept"))
    assert "Fine-tuned tiny" in run(*words, "--model", "tiny").stdout
    assert times(Path("kept")) == before
    tiny_transformer(Path("tiny"), seed=2)  # other weights, other results
    run(*words, "--model", "tiny")
    assert len(times(Path("kept"))) == len(before) + 1


def test_methods_that_could_not_be_compared_are_named(
    document: dict[str, Any],
    words: tuple[object, ...],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sure_method.py").write_text(
        "class Sure:\n"
        "    def fit(self, X, y):\n"
        "        self.classes_ = sorted(set(y))\n"
        "    def predict_proba(self, X):\n"
        "        return [[1.0, 0.0] for _ in X]\n"
    )
    methods = ("--methods", "lpf_robust,logistic_mean,sure_method:Sure")
    shown = " ".join(run(*words, *methods, "--verbose").stdout.split())
    assert "robust ensemble against sure_method:Sure: not compared: log losses are inf" in shown
    assert "0 by the reference and 6 by this method." in shown
    assert document["against"]["others"]["logistic_mean"]["note"] is None
    assert shown.count("not compared") == 1


def test_a_crashed_reference_is_reported(
    document: dict[str, Any], words: tuple[object, ...], folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "kept", tmp_path / "kept")
    store = ResultStore(tmp_path / "kept")
    asking = Evaluator.of(EvaluationPlan(folder / "parts.jsonl", METHODS, seeds=(1,)))
    (cell,) = asking.cells_of("lpf_robust", 1)
    crashed = {"raw": None, "tempered": None, "error": "TrainingError: it broke"}
    store.save(cell, replace(store.load(cell), **crashed))
    shown = " ".join(run(*words, "--keep", tmp_path / "kept", "--verbose").stdout.split())
    assert "Nothing was compared with LPF-SPN, robust ensemble, which has no predictions." in shown
    assert "1 of 1 runs have no answers: TrainingError: it broke" in shown


# What is refused.


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--methods", "lpf_robust,divination"),
            "methods: unknown methods ['divination']; choose from",
        ),
        (("--methods", ","), "methods: no methods were given"),
        (("--methods", "lpf_chosn"), "Did you mean lpf_chosen?"),
        (("--methods", "no_such_module:Name"), "cannot be imported"),
        (("--predicate", "colour"), "colour"),
        (("--protected", "colour"), "protected: no entity has a field 'colour'"),
        (("--seeds", "zero"), "--seeds: must be a number"),
        (("--seeds", "0"), "--seeds: must be a number"),
        (("--seeds", "1,1"), "seeds: must be different numbers"),
        (("--folds", "1"), "--folds"),
        (("--model", "./nowhere"), "model: './nowhere' cannot be loaded: there is no such folder"),
        (
            ("--endpoint", "http://localhost:1/v1"),
            "--endpoint: no language model is asked without --llm",
        ),
        (
            ("--api-key-env", "KEY", "--llm-limit", "9"),
            "--api-key-env, --llm-limit: no language model",
        ),
    ],
)
def test_a_wrong_call_is_reported_and_nothing_is_stored(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    rows = [
        {**{name: row[name] for name in row if name != "label"}, "labels": {"taste": row["label"]}}
        for row in in_splits(entities(60), all_three)
    ]
    path = written(tmp_path / "parts.jsonl", rows)
    assert message in refused(path, *words, "--keep", tmp_path / "kept", "--workers", 1)
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "is empty"),
        (b"name,label\na,good\n", "line 1: is not JSON"),
        (b'["a"]\n', "line 1: must be a JSON object"),
        (b"\xff\xfe", "is not valid UTF-8"),
        (b'{"entity_id": "a", "label": "x"}\n', "evidence: is missing"),
    ],
)
def test_a_file_that_is_not_a_data_set_is_refused(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "parts.jsonl"
    if content is not None:
        path.write_bytes(content)
    assert message in refused(path, "--keep", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_too_few_entities(tmp_path: Path) -> None:
    path = written(tmp_path / "few.jsonl", entities(20))
    message = refused(path, "--keep", tmp_path / "kept")
    assert "has 20 labelled entities, and an evaluation needs at least 60" in message
    assert "lpf train" in message


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1", 1), ("3", 3), ("7,", [7]), ("7, 9", [7, 9]), ("0,1", [0, 1])],
)
def test_seeds_are_a_number_of_them_or_a_list(text: str, seeds: int | list[int]) -> None:
    assert parsed_seeds(text) == seeds


def test_all_means_all_built_in_methods_and_others_can_be_added() -> None:
    ours = (*(name for name in OURS if name != "perfect_reader"), "lpf_chosen")
    for text, names in {
        "all": ours,
        "all,mine:Keywords": (*ours, "mine:Keywords"),
        "mine:Keywords, all": ("mine:Keywords", *ours),
        "all,prior,claim_only": (*ours, "claim_only"),
        "prior, prior": ("prior",),
    }.items():
        assert chosen_methods(parsed_methods(text)) == (names, {})


@pytest.mark.parametrize("text", ["", ",", "-1", "0", "1,-2", "1.5", "one"])
def test_invalid_seeds_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--seeds: must be"):
        parsed_seeds(text)


class Optimist(ChatServer):
    """Finds everything good."""

    def answer(self, request: Received) -> Sent:
        self.received.append(request)
        return Sent(completion(GOOD_OF_ALL))


GOOD_OF_ALL = '{"value": "good", "confidence": 0.9, "reason": "It looks fine."}'


def test_a_language_model_answers_some_entities(
    document: dict[str, Any], words: tuple[object, ...]
) -> None:
    server = Optimist()
    try:
        asked = ("--llm", "small", "--endpoint", server.url, "--llm-limit", 6)
        found = json.loads(run(*words, *asked, "--json").stdout)["language_models"]["llm:small"]
        shown = run(*words, *asked).stdout
    finally:
        server.stop()
    assert found["asked"] == 6
    assert len(server.received) == 6  # kept: the second command asked nothing
    assert found["accuracy"] == pytest.approx(0.5)
    assert found["costs"]["requests"] == 6
    assert set(found["beside"]) == set(METHODS)
    assert "llm:small: 6 entities asked, 0 failed" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_language_model_needs_an_address(words: tuple[object, ...]) -> None:
    assert "needs the address of a server" in refused(*words, "--llm", "small")


def test_a_table_is_read_as_the_options_say(tmp_path: Path) -> None:
    """Results belong to what was read, not to the bytes of the file alone."""
    rows = [f"C{n};text {n % 3};{'abc'[n % 3]};{'abc'[n % 2]}" for n in range(60)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["Customer;text;one;two", *rows]))
    kept = ("--methods", "prior", "--seeds", "1", "--keep", tmp_path / "kept", "--workers", 1)
    assert "--map" in refused(table, *kept)
    found = []
    for column in ("one", "two"):
        words = ("--map", "Customer=entity_id", "--map", f"{column}=label")
        document = json.loads(run(table, *words, *kept, "--json").stdout)
        found.append(document["methods"]["prior"]["nll"])
    assert found[0] != found[1]
    assert "--sheet" in refused(table, "--sheet", "a", *kept)
