"""Nothing is computed twice, after interruptions and with several processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import ConfigError
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.runner import THREAD_VARIABLES, Runner, described, jobs_of
from lpf.evaluation.specs import Cell, DomainData, EvalSpec, FileData, TrainSpec
from small_specs import finished, own_cells, times, two_train_specs

TRAIN_SPEC = two_train_specs()[0].train_spec
CHEAP = [Cell(TRAIN_SPEC, EvalSpec(), name) for name in ("prior", "oracle", "perfect_reader")]


class ProgressLog:
    """Records the calls of a progress callback; interrupts the run at ``stop_at``."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: list[tuple[int, int, str]] = []
        self.stop_at = stop_at

    def __call__(self, done: int, total: int, last: str) -> None:
        self.calls.append((done, total, last))
        if done == self.stop_at:
            raise KeyboardInterrupt


def test_a_run_reports_every_cell_and_all_have_answers(tmp_path: Path) -> None:
    progress = ProgressLog()
    Runner(tmp_path, workers=1, progress=progress).run([*CHEAP, CHEAP[0]])
    assert [(done, total) for done, total, _ in progress.calls] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert {last for _, _, last in progress.calls[1:]} == {
        "compliance: prior",
        "compliance: oracle",
        "compliance: perfect_reader",
    }
    assert all(ResultStore(tmp_path).load(cell).error is None for cell in CHEAP)


def test_a_second_run_computes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "again"
    shutil.copytree(finished(), folder)
    before, progress = times(folder), ProgressLog()
    assert any(path.name == "training.json" for path in before)
    Runner(folder, workers=1, progress=progress).run(two_train_specs())
    assert progress.calls == [(4, 4, "")]
    assert times(folder) == before


def test_missing_cells_are_computed_with_stored_models(tmp_path: Path) -> None:
    folder = tmp_path / "again"
    shutil.copytree(finished(), folder)
    store, before = ResultStore(folder), times(folder)
    robust = next(cell for cell in two_train_specs() if cell.method == "lpf_robust")
    first = store.load(robust)
    store.delete(robust)
    progress = ProgressLog()
    Runner(folder, workers=1, progress=progress).run(two_train_specs())
    assert progress.calls == [(3, 4, ""), (4, 4, "compliance: lpf_robust")]
    np.testing.assert_array_equal(store.load(robust).answers, first.answers)
    changed = {path for path, moment in times(folder).items() if before.get(path) != moment}
    assert changed == {store._path(robust)}


def test_a_stopped_run_continues(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Runner(tmp_path, workers=1, progress=ProgressLog(stop_at=2)).run(CHEAP)
    store = ResultStore(tmp_path)
    assert len(store.missing(CHEAP)) == 1
    before, progress = times(tmp_path / "answers"), ProgressLog()
    Runner(tmp_path, workers=1, progress=progress).run(CHEAP)
    assert [done for done, _, _ in progress.calls] == [2, 3]
    after = times(tmp_path / "answers")
    assert store.missing(CHEAP) == []
    assert before.items() < after.items()


def test_a_crash_is_stored_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crashing_method.py").write_text(
        "class Crashes:\n"
        "    fits = 0\n"
        "    def fit(self, X, y):\n"
        "        Crashes.fits += 1\n"
        "        raise ZeroDivisionError('no luck')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    cells = [*own_cells(TRAIN_SPEC, "crashing_method:Crashes"), *CHEAP]
    for _ in range(2):
        Runner(tmp_path / "kept", workers=1).run(cells)
    store = ResultStore(tmp_path / "kept")
    assert store.load(cells[0]).error == "ZeroDivisionError: no luck"
    assert all(store.load(cell).error is None for cell in CHEAP)
    assert sys.modules["crashing_method"].Crashes.fits == 1


def test_an_error_outside_a_method_ends_the_run_and_leaves_stored_results(
    tmp_path: Path,
) -> None:
    missing = EvalSpec(DomainData("compliance"), entities=0)  # nobody to ask
    wrong = Cell(TRAIN_SPEC, missing, "prior")
    with pytest.raises(ConfigError, match="entities: must be at least 1"):
        Runner(tmp_path, workers=1).run([*CHEAP, wrong])
    assert ResultStore(tmp_path).missing([*CHEAP, wrong]) == [wrong]


def test_two_workers_answer_as_one_does(tmp_path: Path) -> None:
    before, progress = {name: os.environ.get(name) for name in THREAD_VARIABLES}, ProgressLog()
    Runner(tmp_path, workers=2, progress=progress).run(two_train_specs())
    assert {name: os.environ.get(name) for name in THREAD_VARIABLES} == before
    assert [done for done, _, _ in progress.calls] == [0, 1, 2, 3, 4]
    for cell in two_train_specs():
        one, two = ResultStore(finished()).load(cell), ResultStore(tmp_path).load(cell)
        assert one.error is None
        assert one.entity_ids == two.entity_ids
        np.testing.assert_allclose(one.answers, two.answers, atol=1e-6)
        np.testing.assert_allclose(one.raw, two.raw, atol=1e-6)


def test_jobs_are_train_specs_and_the_longest_come_first() -> None:
    other = replace(TRAIN_SPEC, seed=2)
    cells = [
        Cell(TRAIN_SPEC, EvalSpec(), "prior"),
        Cell(other, EvalSpec(), "prior"),
        Cell(other, EvalSpec(), "oracle"),
    ]
    jobs = jobs_of(cells)
    assert [job.train_spec for job in jobs] == [other, TRAIN_SPEC]
    assert jobs[0].cells == tuple(cells[1:])


def test_cells_are_described_by_data_and_method() -> None:
    assert described(CHEAP[0]) == "compliance: prior"
    file = TrainSpec(FileData("some/where/fever.jsonl", "f00d"))
    assert described(Cell(file, EvalSpec(), "prior")) == "fever: prior"


def test_ctrl_c_ends_two_workers_at_once_and_reports_stored_results(tmp_path: Path) -> None:
    """In a process of its own, interrupted as a terminal does it: the whole group."""
    run = started(
        tmp_path,
        "from small_specs import two_train_specs\n"
        "if __name__ == '__main__':\n"
        "    begun = lambda done, total, last: print('begun', flush=True)\n"
        f"    Runner(Path({str(tmp_path / 'kept')!r}), 2, begun).run(two_train_specs())\n",
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"
    time.sleep(1.0)  # workers are importing or training
    os.killpg(run.pid, signal.SIGINT)
    _, output = run.communicate(timeout=30)
    assert run.returncode != 0
    assert "results are stored, and the same command continues from there" in output
    assert output.count("Traceback") == 1  # the parent's own, which the command line replaces
    assert is_gone(run.pid)


@pytest.mark.parametrize("killed_by", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_killed_parent(tmp_path: Path, killed_by: signal.Signals) -> None:
    """Two workers that are in the middle of fitting; only the parent is killed."""
    run = started(
        tmp_path,
        "import os, time\n"
        "from dataclasses import replace\n"
        "from small_specs import Cell, EvalSpec, two_train_specs\n"
        "class Endless:\n"
        "    def fit(self, X, y):\n"
        "        os.write(1, b'%d\\n' % os.getpid())\n"  # at once: workers must not mix
        "        time.sleep(600)\n"
        "    def predict_proba(self, X): ...\n"
        "specs = {cell.train_spec for cell in two_train_specs()}\n"
        "cells = [Cell(one, EvalSpec(), 'endless') for one in specs]\n"
        "Endless.__module__ = 'run'\n"
        "if __name__ == '__main__':\n"
        "    import run\n"
        f"    runner = Runner(Path({str(tmp_path / 'kept')!r}), 2)\n"
        "    replace(runner, estimators={'endless': run.Endless}).run(cells)\n",
    )
    assert run.stdout is not None
    workers = {int(run.stdout.readline()) for _ in range(2)}
    assert len(workers - {run.pid}) == 2
    os.kill(run.pid, killed_by)
    killed = time.monotonic()
    try:
        while any(map(is_running, workers)) and time.monotonic() < killed + 10:
            time.sleep(0.02)
        assert time.monotonic() - killed < 2
    finally:
        for worker in filter(is_running, workers):
            os.kill(worker, signal.SIGKILL)
        run.communicate(timeout=30)
    assert run.returncode == -killed_by


def started(folder: Path, program: str) -> subprocess.Popen[str]:
    """A process that runs ``program``, in a group of its own."""
    beginning = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
        "from pathlib import Path\n"
        "from lpf.evaluation.runner import Runner\n"
    )
    script = folder / "run.py"
    script.write_text(beginning + program)
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # An ended process whose parent is gone may wait for its new parent to notice.
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def is_gone(group: int) -> bool:
    """Return True if no process of it is left; the resource tracker ends a moment later."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
