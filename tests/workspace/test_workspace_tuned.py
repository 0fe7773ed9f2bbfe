"""A tuned reader in a workspace: chosen by training, used from ingestion to replay, carried with
its model, and the same after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lpf.errors import ReaderIntegrityError
from lpf.index import readers_used
from lpf.reading import PairReader
from lpf.reading.tuned import FOLDER, WEIGHTS_FILE
from lpf.training import TrainingConfig
from lpf.training.tuning import STATE
from lpf.workspace import Workspace, wiring
from lpf.workspace.doctor import check_workspace
from lpf.workspace.training_runs import TrainingOutcome, TrainingPlan
from tuned_models import SCHEMA, coloured, quick_ladder, tiny_reader

CONFIG = TrainingConfig(max_epochs=2, hidden=(8,), latent_width=4, aggregator=None, members=1)
PLAN = TrainingPlan(config=CONFIG, seeds=(1,))

pytestmark = pytest.mark.usefixtures("one_thread")


def rows(count: int, *, first: int = 0, labelled: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "evidence_id": f"{item.evidence_id}",
            "entity_id": entity.entity_id,
            "text": item.text,
            "claim": entity.claim,
            "credibility": 0.9,
            **({"supports_value": entity.labels["verdict"]} if labelled else {}),
        }
        for entity in list(coloured(first + count))[first:]
        for item in entity.evidence
    ]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PairReader:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def trained(
    reader: PairReader, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Workspace, TrainingOutcome]]:
    """A workspace whose model has a tuned reader, trained on its own evidence."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        quick_ladder(monkeypatch)
        uses(monkeypatch, reader)
        folder = tmp_path_factory.mktemp("workspaces") / "first"
        with Workspace.create(folder, SCHEMA) as space:
            space.ingest(rows(80))
            yield space, space.train(plan=PLAN)


def uses(monkeypatch: pytest.MonkeyPatch, reader: PairReader) -> None:
    monkeypatch.setattr(wiring, "open_reader", lambda *_, **__: reader._inner)
    monkeypatch.setattr(wiring, "claim_reader", lambda inner: PairReader(inner, reader.stance))


def test_a_tuned_model_answers_and_its_answers_replay_from_texts(
    trained: tuple[Workspace, TrainingOutcome], reader: PairReader
) -> None:
    space, outcome = trained
    tuned = outcome.trained.tuned
    assert tuned is not None
    assert outcome.active
    assert tuned.digest[:16] in space.reader.reader_id
    result = space.query("E3")
    assert result.evidence is not None
    replayed = space.replay(result.audit_ptr or "", deep=True)
    assert replayed.agrees
    space.ingest(rows(1, first=90, labelled=False))
    read_by = readers_used(space.evidence)
    assert any(tuned.digest[:16] in name for name in read_by)
    assert reader.reader_id in read_by
    assert space.query("E90").has_answer


def test_the_tuned_reader_lies_with_its_model_for_its_owner_only(
    trained: tuple[Workspace, TrainingOutcome],
) -> None:
    space, outcome = trained
    home = space.folder / "models" / outcome.version / FOLDER
    assert home.stat().st_mode & 0o077 == 0
    for path in home.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    for path in (space.folder / "searches").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


def test_training_again_starts_from_the_untuned_reader(
    trained: tuple[Workspace, TrainingOutcome], reader: PairReader
) -> None:
    space, _ = trained
    assert space.reader_for_training(True).reader_id == reader.reader_id


def test_records_of_an_earlier_model_replay_after_a_tuned_one_answers(
    reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uses(monkeypatch, reader)
    quick_ladder(monkeypatch)
    with Workspace.create(tmp_path / "space", SCHEMA) as space:
        space.ingest(rows(80))
        untuned = TrainingConfig(
            max_epochs=2, hidden=(8,), latent_width=4, aggregator=None, members=1, budget=0
        )
        plain = space.train(plan=TrainingPlan(config=untuned, seeds=(1,)))
        assert plain.trained.tuned is None
        before = space.query("E3").audit_ptr or ""
        outcome = space.train(plan=PLAN)
        assert outcome.trained.tuned is not None
        after = space.query("E3").audit_ptr or ""
        assert space.replay(before, deep=True).agrees
        assert space.replay(after, deep=True).agrees
        space.use_model(plain.version)
        assert space.replay(after, deep=True).agrees
        assert space.replay(before, deep=True).agrees


def test_a_model_takes_its_tuned_reader_along(
    trained: tuple[Workspace, TrainingOutcome],
    reader: PairReader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space, outcome = trained
    # Where the untuned stance reader is not even installed.
    monkeypatch.setattr(wiring, "claim_reader", PairReader)
    with Workspace.create(tmp_path / "other", SCHEMA) as other:
        version = other.models.add(space.folder / "models" / outcome.version)
        other.use_model(version)
        assert version == outcome.version
        other.ingest(rows(4, labelled=False))
        answers = [one.query("E3").distribution for one in (space, other)]
        assert answers[0] == pytest.approx(answers[1], abs=1e-6)
        (found,) = [one for one in check_workspace(other.folder) if one.name == "reader"]
        assert found.state == "ok"


def test_a_changed_reader_is_found_when_it_reads_and_by_the_doctor(
    trained: tuple[Workspace, TrainingOutcome], tmp_path: Path
) -> None:
    space, outcome = trained
    with Workspace.create(tmp_path / "other", SCHEMA) as other:
        other.use_model(other.models.add(space.folder / "models" / outcome.version))
        path = other.folder / "models" / outcome.version / FOLDER / WEIGHTS_FILE
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(ReaderIntegrityError, match=WEIGHTS_FILE):
            other.ingest(rows(2, labelled=False))
        (found,) = [one for one in check_workspace(other.folder) if one.name == "reader"]
        assert found.state == "fault"


SCRIPT = """
import sys
from pathlib import Path
import pytest
from lpf.training import tuning
from lpf.workspace import Workspace
from test_workspace_tuned import PLAN, SCHEMA, rows, uses
from tuned_models import quick_ladder, tiny_reader

tuning.SAVE_SECONDS = 0.0
monkeypatch = pytest.MonkeyPatch()
quick_ladder(monkeypatch)
uses(monkeypatch, tiny_reader(Path(sys.argv[2])))
folder = Path(sys.argv[1])
if not folder.exists():
    with Workspace.create(folder, SCHEMA) as space:
        space.ingest(rows(80))
with Workspace(folder) as space:
    print(space.train(plan=PLAN).trained.tuned.digest)
"""


def command(folder: Path, readers: Path) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), *sys.path]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(readers)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_run_continues_with_the_same_reader(
    trained: tuple[Workspace, TrainingOutcome], tmp_path: Path
) -> None:
    _, outcome = trained
    folder, readers = tmp_path / "killed", tmp_path / "reader"
    process = command(folder, readers)
    last = time.monotonic() + 240
    while not list(folder.rglob(STATE)) and process.poll() is None and time.monotonic() < last:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert list(folder.rglob(STATE))
    again = command(folder, readers)
    printed, _ = again.communicate(timeout=300)
    assert again.returncode == 0
    assert not list(folder.rglob(STATE))
    assert outcome.trained.tuned is not None
    assert printed.split()[-1] == outcome.trained.tuned.digest


def test_features_of_a_tuned_reader_are_erased_with_their_texts(
    trained: tuple[Workspace, TrainingOutcome],
) -> None:
    space, _ = trained
    searches = space.folder / "searches"
    assert list(searches.rglob("*.npy"))
    space.erase("E3:0")
    assert not list(searches.rglob("*.npy"))
