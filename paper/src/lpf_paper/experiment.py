"""The paper's experimental part from one call: what is missing is run, all of it is told."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

from lpf.errors import ConfigError
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.runner import Progress, Runner
from lpf.version import __version__
from lpf_paper.document import Experiment, Made
from lpf_paper.exhibits import StudyResult
from lpf_paper.plan import Plan
from lpf_paper.studies.catalogue import all_studies
from lpf_paper.studies.study import ResultReader, Study

TITLE = "Latent Posterior Factors: the paper's experiments, run again"
PACKAGES = (
    "numpy",
    "scipy",
    "torch",
    "torch-geometric",
    "transformers",
    "scikit-learn",
    "onnxruntime",
)
Telling = Callable[[str], None]


@dataclass(frozen=True)
class ExperimentRun:
    """``folder`` keeps results, features and models; ``command`` is what the report says made it.
    ``only`` names the studies to run; all of them where it is empty."""

    plan: Plan
    folder: Path
    command: str
    workers: int = 0
    only: tuple[str, ...] = ()
    progress: Progress | None = None
    tell: Telling | None = None

    def __call__(self) -> Experiment:
        begin = perf_counter()
        chosen = self.studies()
        self._say("running")
        cells = list(dict.fromkeys(cell for one in chosen for cell in one.cells(self.plan)))
        kept = len(cells) - len(ResultStore(self.folder).missing(cells))
        Runner(self.folder, self.workers, self.progress).run(cells)
        book = ResultReader(self.folder)
        results = []
        for study in chosen:
            self._say(f"judging: {study.name}")
            results.append(study.result(self.plan, book))
        made = self._made(perf_counter() - begin, len(cells), kept)
        return self._experiment(results, made)

    def studies(self) -> list[Study]:
        """ConfigError for a name that is none."""
        there = all_studies(self.plan)
        unknown = sorted(set(self.only) - {study.name for study in there})
        if unknown:
            raise ConfigError(
                f"studies: {unknown} are none; those are {[study.name for study in there]}. "
                "Nothing was run."
            )
        return [study for study in there if not self.only or study.name in self.only]

    def _experiment(self, results: Sequence[StudyResult], made: Made) -> Experiment:
        return Experiment(
            TITLE,
            made,
            tuple(results),
            tuple(sentence for study in results for sentence in study.findings[:1]),
            tuple(self._cautions()),
        )

    def _made(self, seconds: float, results: int, kept: int) -> Made:
        return Made(
            self.command,
            __version__,
            machine(),
            platform.python_version(),
            {name: _version(name) for name in PACKAGES},
            seconds,
            self.plan.main_seeds,
            self.plan.quick,
            datetime.now(UTC).isoformat(timespec="seconds"),
            results,
            kept,
        )

    def _cautions(self) -> list[str]:
        return [
            "The domains are synthetic and of our own making: they show how methods compare under "
            "stated conditions, not how any of them does on your data. For those: lpf evaluate."
        ]

    def _say(self, what: str) -> None:
        if self.tell is not None:
            self.tell(what)


def machine() -> str:
    """What times depend on, as far as it can be told."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [platform.machine(), platform.system(), f"{cores or 'unknown'} cores"]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        parts.append(f"{memory / 2**30:.0f} GB")
    return ", ".join(parts)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def command_line() -> str:
    """As it was typed, without the folder of the program."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
