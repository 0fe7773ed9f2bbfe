"""Runs cells on all cores: stored results are reused, the rest is computed.

All cells of one ``TrainSpec`` go to one process, which trains once. Each result is stored as soon
as it is computed, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lpf.datasets import Dataset
from lpf.errors import ConfigError, TrainingError
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.spec_datasets import DataSources
from lpf.evaluation.specs import Cell, DomainData, TrainSpec

# Called with: results done, results in all, a description of the last one.
Progress = Callable[[int, int, str], None]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
MOST_WORKERS = 60  # Windows cannot wait for more processes


def default_cache() -> Path:
    """The folder in the user's cache where results, features and models are stored."""
    from platformdirs import user_cache_path

    return user_cache_path("lpf") / "experiments"


@dataclass(frozen=True)
class Job:
    """The missing cells of one training spec."""

    train_spec: TrainSpec
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Runner:
    """``folder`` holds results, features and models. ``workers=0`` is one per core. ``datasets``
    are data sets in memory by digest; others are read from their files. ``estimators`` are own
    methods that were given as objects, by method name."""

    folder: Path
    workers: int = 0
    progress: Progress | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    estimators: Mapping[str, object] = field(default_factory=dict)
    store: ResultStore = field(init=False)

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(
                f"must be 0 (one per core) or above, got {self.workers}.", field="workers"
            )
        object.__setattr__(self, "store", ResultStore(self.folder))

    def run(self, cells: Sequence[Cell]) -> None:
        """Afterwards every cell has a stored result. An error outside a method ends the run;
        results that are stored stay."""
        wanted = list(dict.fromkeys(cells))
        jobs = jobs_of(self.store.missing(wanted))
        counter = _Counter(len(wanted), self.progress)
        counter.start(len(wanted) - sum(len(job.cells) for job in jobs))
        if not jobs:
            return
        workers = min(self.workers or cores(), len(jobs), MOST_WORKERS)
        if any(_is_defined_in_main(one) for one in self.estimators.values()):
            workers = 1  # another process could not import it
        try:
            if workers == 1:
                self._run_here(jobs, counter)
            else:
                self._run_in_processes(jobs, workers, counter)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; {counter.done:,} of {len(wanted):,} results are stored, and the "
                "same command continues from there."
            ) from None

    def _run_here(self, jobs: Sequence[Job], counter: _Counter) -> None:
        import torch

        threads = self.workers or cores()
        before = torch.get_num_threads()
        torch.set_num_threads(threads)  # of large networks; small ones are limited to one
        worker = Worker(self.folder, threads, DataSources(self.datasets), self.estimators)
        try:
            for job in jobs:
                for cell in worker.run(job):
                    counter.add(cell)
        finally:
            torch.set_num_threads(before)

    def _run_in_processes(self, jobs: Sequence[Job], workers: int, counter: _Counter) -> None:
        before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # read when a worker starts
        context = get_context("spawn")
        finished_cells = context.SimpleQueue()
        pool = ProcessPoolExecutor(
            workers,
            mp_context=context,
            initializer=_start_worker,
            initargs=(self.folder, dict(self.datasets), dict(self.estimators), finished_cells),
        )
        events: SimpleQueue[Cell | Future[None] | None] = SimpleQueue()
        reader = threading.Thread(target=_forward, args=(finished_cells, events), daemon=True)
        reader.start()
        try:
            with _ignore_sigint_in_children():
                futures = {pool.submit(_run_job, job): job for job in jobs}
            for future in futures:
                future.add_done_callback(events.put)
            _collect(events, futures, counter)
            finished_cells.put(None)  # ends the reader
        except BrokenProcessPool as error:
            raise TrainingError(
                "a worker process was ended from outside, most likely for lack of memory. Finished "
                "results are stored.",
                hint="Repeat with one worker.",
            ) from error
        except BaseException:
            _terminate(pool)  # results are written whole, so none is half done
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            _restore(before)


class _Counter:
    """Counts results, each cell once, and reports progress."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress = total, progress
        self.done = 0
        self._counted: set[Cell] = set()

    def start(self, stored: int) -> None:
        self.done = stored
        self._report("")

    def add(self, cell: Cell) -> None:
        if cell not in self._counted:
            self._counted.add(cell)
            self.done += 1
            self._report(described(cell))

    def _report(self, last: str) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total, last)


def _collect(
    events: SimpleQueue[Cell | Future[None] | None],
    futures: Mapping[Future[None], Job],
    counter: _Counter,
) -> None:
    """Waits until all jobs are done; raises what a job raised. A job's future may arrive before
    the last of its cells, which come through another queue."""
    left = len(futures)
    while left:
        event = events.get()
        if isinstance(event, Future):
            left -= 1
            event.result()
            for cell in futures[event].cells:
                counter.add(cell)
        elif event is not None:
            counter.add(event)


def _forward(finished_cells: Any, events: SimpleQueue[Cell | Future[None] | None]) -> None:
    """Runs in a thread: moves cells from the processes' queue to the queue of the parent."""
    while (cell := finished_cells.get()) is not None:
        events.put(cell)


def jobs_of(cells: Sequence[Cell]) -> list[Job]:
    """Cells by training spec, the longest job first: if it started last, all would wait for it."""
    by_spec: dict[TrainSpec, list[Cell]] = {}
    for cell in cells:
        by_spec.setdefault(cell.train_spec, []).append(cell)
    jobs = [Job(train_spec, tuple(of_spec)) for train_spec, of_spec in by_spec.items()]
    return sorted(jobs, key=lambda job: -len(job.cells))


@dataclass(frozen=True)
class Worker:
    """Computes jobs in one process. Data sets are read once for all of them."""

    folder: Path
    threads: int
    sources: DataSources
    estimators: Mapping[str, object]

    def run(self, job: Job) -> Iterator[Cell]:
        """Yields each cell when its result is stored."""
        from lpf.evaluation.workbench import Workbench

        store = ResultStore(self.folder)
        bench = Workbench(
            job.train_spec,
            self.folder,
            self.threads,
            sources=self.sources,
            estimators=self.estimators,
        )
        for cell in job.cells:
            if not store.has(cell):  # another process may have stored it
                store.save(cell, bench.predict(cell))
            yield cell


# What _start_worker sets up in a worker process: the worker, and the queue of finished cells.
_process: dict[str, Any] = {}


def _start_worker(
    folder: Path,
    datasets: Mapping[str, Dataset],
    estimators: Mapping[str, object],
    finished_cells: Any,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, name="lpf-parent", daemon=True).start()
    import torch

    torch.set_num_threads(1)
    _process["worker"] = Worker(folder, 1, DataSources(datasets), estimators)
    _process["finished_cells"] = finished_cells


def _end_with_parent() -> None:
    """Runs in a thread of a worker: a parent that is killed cannot end its workers."""
    parent = parent_process()
    assert parent is not None  # only worker processes run this
    wait([parent.sentinel])
    os._exit(1)  # results are written whole, so none is half done


def _run_job(job: Job) -> None:
    for cell in _process["worker"].run(job):
        _process["finished_cells"].put(cell)


def described(cell: Cell) -> str:
    """A few words for a progress bar."""
    data = cell.train_spec.data
    name = data.domain if isinstance(data, DomainData) else Path(data.path).stem
    return f"{name}: {cell.method}"


def cores() -> int:
    """The number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def _is_defined_in_main(estimator: object) -> bool:
    cls = estimator if isinstance(estimator, type) else type(estimator)
    return cls.__module__ == "__main__"


@contextmanager
def _ignore_sigint_in_children() -> Iterator[None]:
    """Processes started inside this context ignore Ctrl-C, even while they import modules."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _terminate(pool: ProcessPoolExecutor) -> None:
    """The pool itself would wait for running jobs, which may take an hour."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.terminate()


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
