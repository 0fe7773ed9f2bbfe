"""Cells to answers: what is kept already is left alone, the rest is shared out over the cores.

A train_spec goes to one process, which trains once and answers all its cells; each result is kept as
soon as it is there, so a run that is stopped goes on where it was.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from lpf.errors import ConfigError, TrainingError
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell, DomainData, TrainSpec

# Done, in all, and what was done last.
Progress = Callable[[int, int, str], None]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_POLL_SECONDS = 1.0
MOST_WORKERS = 60  # Windows waits for no more


@dataclass(frozen=True)
class Job:
    """The missing cells of one train_spec."""

    train_spec: TrainSpec
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Runner:
    """``folder`` keeps everything. ``workers`` 0 stands for one a core."""

    folder: Path
    workers: int = 0
    progress: Progress | None = None
    store: ResultStore = field(init=False)

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(f"workers: must be 0 (one a core) or above, got {self.workers}.")
        object.__setattr__(self, "store", ResultStore(self.folder))

    def run(self, cells: Sequence[Cell]) -> None:
        """Afterwards every cell has a result. Whatever goes wrong outside a method ends the run;
        results that are there stay."""
        wanted = list(dict.fromkeys(cells))
        jobs = jobs_of(self.store.missing(wanted))
        done = len(wanted) - sum(len(job.cells) for job in jobs)
        self._tell(done, len(wanted), "")
        if not jobs:
            return
        workers = min(self.workers or cores(), len(jobs), MOST_WORKERS)
        try:
            if workers == 1:
                self._alone(jobs, done, len(wanted))
            else:
                self._together(jobs, workers, done, len(wanted))
        except KeyboardInterrupt:
            kept = len(wanted) - len(self.store.missing(wanted))
            raise KeyboardInterrupt(
                f"interrupted; {kept:,} of {len(wanted):,} results are kept, and the same command "
                "goes on from there."
            ) from None

    def _alone(self, jobs: Sequence[Job], done: int, total: int) -> None:
        import torch

        threads = self.workers or cores()
        torch.set_num_threads(threads)
        for job in jobs:
            for cell in work(job, self.folder, threads):
                done += 1
                self._tell(done, total, described(cell))

    def _together(self, jobs: Sequence[Job], workers: int, done: int, total: int) -> None:
        before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # read when a worker starts
        pool = ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_parent
        )
        try:
            with _ignore_sigint_in_children():
                running = {pool.submit(work_through, job, self.folder): job for job in jobs}
            self._watch(running, jobs, done, total)
        except BrokenProcessPool as error:
            raise TrainingError(
                "a process was ended from outside, most likely for want of memory. What was done "
                "is kept; repeat with one worker."
            ) from error
        except BaseException:
            _terminate(pool)  # results are written whole, so nothing is half done
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            _restore(before)

    def _watch(
        self,
        running: dict[Future[None], Job],
        jobs: Sequence[Job],
        done: int,
        total: int,
    ) -> None:
        """Counts results as they appear in the folder: jobs are long, cells are not."""
        missing = [cell for job in jobs for cell in job.cells]
        while running:
            finished, _ = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
            for future in finished:
                del running[future]
                future.result()
            missing, newly = _still_missing(self.store, missing)
            for cell in newly:
                done += 1
                self._tell(done, total, described(cell))

    def _tell(self, done: int, total: int, last: str) -> None:
        if self.progress is not None:
            self.progress(done, total, last)


def jobs_of(cells: Sequence[Cell]) -> list[Job]:
    """Cells by train_spec, the longest first: a long job begun last keeps all others waiting."""
    by_lesson: dict[TrainSpec, list[Cell]] = {}
    for cell in cells:
        by_lesson.setdefault(cell.train_spec, []).append(cell)
    jobs = [Job(train_spec, tuple(found)) for train_spec, found in by_lesson.items()]
    return sorted(jobs, key=lambda job: -len(job.cells))


def work_through(job: Job, folder: Path) -> None:
    """In a process of its own, on one core."""
    import torch

    torch.set_num_threads(1)
    for _ in work(job, folder, 1):
        pass


def work(job: Job, folder: Path, threads: int) -> Iterator[Cell]:
    """Answers and keeps cell by cell."""
    from lpf.evaluation.workbench import Workbench

    bench, store = Workbench(job.train_spec, folder, threads), ResultStore(folder)
    for cell in job.cells:
        if not store.has(cell):  # another study may have come first
            store.save(cell, bench.predict(cell))
        yield cell


def described(cell: Cell) -> str:
    """A few words for a progress bar."""
    data = cell.train_spec.data
    name = data.domain if isinstance(data, DomainData) else Path(data.path).stem
    return f"{name}: {cell.method}"


def cores() -> int:
    """Those that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


@contextmanager
def _ignore_sigint_in_children() -> Iterator[None]:
    """Processes that begin in here ignore Ctrl-C, even while they still import."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's business
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_interrupts_to_parent() -> None:
    """In a worker: it would answer Ctrl-C by beginning the next job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _terminate(pool: ProcessPoolExecutor) -> None:
    """The pool itself only lets jobs come to their end, which may be an hour away."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


def _still_missing(store: ResultStore, cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    missing = store.missing(cells)
    left = set(missing)
    return missing, [cell for cell in cells if cell not in left]


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
