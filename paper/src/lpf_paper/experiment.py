"""Runs the paper's experiments in one call: computes missing results and returns all of them."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

from lpf import __version__
from lpf.errors import ConfigError
from lpf.evaluation import Progress, ResultStore, Runner
from lpf_paper.document import Experiment, RunInfo
from lpf_paper.plan import ExperimentPlan
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
WARNINGS = (
    "The domains are synthetic and were made for this package: they show how methods compare under "
    "known conditions, not how well they work on your data. To see that, run lpf evaluate.",
)


@dataclass(frozen=True)
class ExperimentRun:
    """Runs the cells that are missing and returns the results of all chosen studies.

    ``folder`` stores results, features and models. ``command`` is what the report shows as the
    command that made it. ``only`` names the studies to run; empty means all.
    """

    plan: ExperimentPlan
    folder: Path
    command: str
    workers: int = 0
    only: tuple[str, ...] = ()
    progress: Progress | None = None

    def __call__(self) -> Experiment:
        begin = perf_counter()
        chosen = self.studies()
        cells = list(dict.fromkeys(cell for one in chosen for cell in one.cells(self.plan)))
        stored = len(cells) - len(ResultStore(self.folder).missing(cells))
        Runner(self.folder, self.workers, self.progress).run(cells)
        reader = ResultReader(self.folder)
        studies = tuple(study.result(self.plan, reader) for study in chosen)
        return Experiment(
            TITLE,
            self._run_info(perf_counter() - begin, len(cells), stored),
            studies,
            summary=tuple(sentence for study in studies for sentence in study.findings[:1]),
            warnings=WARNINGS,
        )

    def studies(self) -> list[Study]:
        """The chosen studies in reading order. ConfigError for an unknown name."""
        available = all_studies(self.plan)
        names = [study.name for study in available]
        unknown = sorted(set(self.only) - set(names))
        if unknown:
            raise ConfigError(f"unknown studies {unknown}; choose from {names}. Nothing was run.")
        return [study for study in available if not self.only or study.name in self.only]

    def _run_info(self, seconds: float, results: int, stored: int) -> RunInfo:
        return RunInfo(
            command=self.command,
            version=__version__,
            machine=machine(),
            python=platform.python_version(),
            packages={name: _version(name) for name in PACKAGES},
            seconds=seconds,
            seeds=self.plan.main_seeds,
            quick=self.plan.quick,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            results=results,
            kept=stored,
        )


def machine() -> str:
    """What measured times depend on: processor type, system, cores and memory."""
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
    """The command as typed, without the folder of the program."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
