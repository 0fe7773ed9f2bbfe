"""The recipe's commands that package the weights, score them and fill in the card."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from lpf.reading.export import STANCE, file_sha256
from lpf.reading.stored_weights import unpack_weights
from recipe import card, package, scores
from recipe.mixture import LABELS, PASS, Row
from recipe.training import LEFT_OUT
from tiny_stance import tiny_stance


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Float32 weights as a run writes them."""
    folder = tmp_path_factory.mktemp("run")
    tiny_stance(folder)
    path = folder / "weights.safetensors"
    save_file(unpack_weights((folder / "model.safetensors").read_bytes()), path)
    return path


@pytest.fixture(scope="module")
def run(weights: Path) -> Path:
    settings = {"base": "somewhere/base.safetensors", "pairs": 900, "rate": 1e-4, "seed": 0}
    entries = [
        {"time": 0, "settings": {**settings, "pairs": 1000}, "start": 0},
        {"time": 1800, "pairs": 450},
        {"time": 90_000, "settings": settings, "start": 450},
        {"time": 91_800, "pairs": 900},
    ]
    log = weights.parent / "log.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return weights.parent


def packaged(weights: Path, out: Path, *more: str) -> str:
    package.main(["--weights", str(weights), "--out", str(out), *more])
    return file_sha256(out / "model.safetensors")


def test_the_same_weights_give_the_same_file_and_its_hash_is_printed(
    weights: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = package.PINNED_IN.read_bytes()
    digest = packaged(weights, tmp_path / "one", "--run", str(run))
    assert capsys.readouterr().out == f"{digest}\n"
    assert packaged(weights, tmp_path / "two") == digest
    assert file_sha256(tmp_path / "one" / "tokenizer.json") == STANCE.tokenizer_sha256
    text = (tmp_path / "one" / "card.md").read_text()
    assert digest in text
    assert "900 pairs and 1.0 hours" in text
    assert "Run 1 was continued after 450 pairs: pairs 1000 became 900." in text
    assert "somewhere" not in text
    assert package.PINNED_IN.read_bytes() == pinned


def test_matrices_may_be_stored_in_float16(weights: Path, tmp_path: Path) -> None:
    packaged(weights, tmp_path / "int8")
    packaged(weights, tmp_path / "mixed", "--float16", r"hidden\.weight")
    small, large = (load_file(tmp_path / one / "model.safetensors") for one in ("int8", "mixed"))
    assert (small["hidden.weight"].dtype, large["hidden.weight"].dtype) == ("int8", "float16")


def lacking(tensors: dict) -> None:
    del tensors["encoder.layer.1.output.dense.bias"]


def headless(tensors: dict) -> None:
    del tensors["stance.weight"]


def not_finite(tensors: dict) -> None:
    tensors["hidden.bias"][3] = float("nan")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lacking, "lacks the tensor 'encoder.layer.1.output.dense.bias'"),
        (headless, "no stance.weight of 3 x 384"),
        (not_finite, "hidden.bias is not float32, or has values that are not finite"),
    ],
)
def test_weights_that_the_reader_cannot_use_are_rejected(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change, message: str
) -> None:
    tensors = load_file(weights)
    change(tensors)
    save_file(tensors, tmp_path / "changed.safetensors")
    with pytest.raises(SystemExit):
        packaged(tmp_path / "changed.safetensors", tmp_path / "out")
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_there_are_named(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        packaged(tmp_path / "none.safetensors", tmp_path / "out")
    assert "none.safetensors" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        scores.main(["--package", str(tmp_path), "--data", str(tmp_path)])
    assert "model.safetensors" in capsys.readouterr().err


def test_every_training_set_has_a_licence_in_the_card() -> None:
    assert card.SOURCES.keys() == PASS.keys()


def test_the_hash_is_pinned_in_lpf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, before = tmp_path / "export.py", package.PINNED_IN.read_text()
    copy.write_text(before)
    monkeypatch.setattr(package, "PINNED_IN", copy)
    package.pin("0" * 64)
    lines = zip(before.splitlines(), copy.read_text().splitlines(), strict=True)
    changed = [new for old, new in lines if old != new]
    assert changed == [f'    "{"0" * 64}",']


def test_labels_that_do_not_occur_are_left_out_of_scores() -> None:
    rows = [Row("a", "b", 0, ""), Row("a", "b", 1, "")]
    found = scores.score(np.array([[0.2, 0.1, 0.7], [0.3, 0.3, 0.4]]), rows)
    assert found["accuracy"] == 0.5
    assert found["nll"] == pytest.approx(-(np.log(2 / 3) + np.log(1 / 2)) / 2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Made-up pairs in the files that the recipe reads."""
    draw = random.Random(0)
    words = ("the", "mill", "burned", "sold", "opened", "in", "May", "1812", "not", "boats")
    for name in (*PASS, *LEFT_OUT):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as stream:
            for number in range(150):
                claim, evidence = (" ".join(draw.choices(words, k=8)) for _ in range(2))
                label = LABELS[number % 3]
                row = {"claim": claim, "evidence": evidence, "label": label, "group": str(number)}
                stream.write(json.dumps(row) + "\n")
    return tmp_path


def test_scores_are_written_once_and_shown_in_the_card(
    weights: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, found = tmp_path / "out", tmp_path / "scores.json"
    digest = packaged(weights, out)
    assert card.NOT_YET in (out / "card.md").read_text()
    command = ["--package", str(out), "--data", str(data), "--original", str(weights), "--quick"]
    command += ["--scores", str(found)]
    monkeypatch.setattr(scores.Scores, "_cold_start", lambda self: {"stance": 1.0, "minilm": 0.5})
    scores.main(command)
    content = json.loads(found.read_text())
    assert content["weights_sha256"] == digest
    assert set(content["left-out"]) == set(LEFT_OUT)
    assert content["contrast"]["categories"]["all"]["lines"] == 8 * scores.QUICK.contrast
    assert content["storage"]["float32"]["largest_change"] < 0.01
    text = (out / "card.md").read_text()
    assert card.NOT_YET not in text
    assert "a probability changes by" in text

    def again(*_: object) -> None:
        raise AssertionError("computed again")

    for part in ("contrast", "left_out", "speed", "storage"):
        monkeypatch.setattr(scores.Scores, part, again)
    scores.main(command)
    assert json.loads(found.read_text()) == content


def test_a_card_without_a_section_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "card.md"
    path.write_text("# A card\n")
    with pytest.raises(ValueError, match="begin data"):
        card.fill_card(path, {"data": "x"})
