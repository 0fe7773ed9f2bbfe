"""The study: every theorem and proposition of the paper with its verdict."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from lpf.evaluation import GENERATION, Cell
from lpf.storage import write_atomically
from lpf_paper.exhibits import StudyResult
from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.study import ResultReader
from lpf_paper.studies.theorems.calibration import calibration_statement
from lpf_paper.studies.theorems.consistency import consistency_statement
from lpf_paper.studies.theorems.corrupted_items import corruption_statement
from lpf_paper.studies.theorems.generalisation import generalisation_statement
from lpf_paper.studies.theorems.learned_weights import (
    contradiction_statement,
    optimality_statement,
)
from lpf_paper.studies.theorems.lower_bound import lower_bound_statement
from lpf_paper.studies.theorems.sample_size import sample_size_statement
from lpf_paper.studies.theorems.sampling import sampling_statements
from lpf_paper.studies.theorems.statement import CheckedStatement, Verdict, verdict_table
from lpf_paper.studies.theorems.trained import TrainedNetworks, train_spec, trained_cells
from lpf_paper.studies.theorems.uncertainty_parts import uncertainty_statement

NAME = "theorems"
VERDICTS: tuple[Verdict, ...] = ("holds", "holds with this correction", "does not hold")


@dataclass(frozen=True)
class TheoremsStudy:
    """Its networks are cells, shared with the study of domains. What is computed with them takes a
    minute or so and is stored under a hash of the code that computes it."""

    name: str = NAME

    def cells(self, plan: ExperimentPlan) -> list[Cell]:
        return trained_cells(plan)

    def result(self, plan: ExperimentPlan, results: ResultReader) -> StudyResult:
        path = result_path(plan, results.folder)
        if not path.is_file():
            found = study_result(checked_statements(TrainedNetworks(plan, results.folder)))
            write_atomically(path, json.dumps(found.to_dict(), allow_nan=False).encode())
        return StudyResult.from_dict(json.loads(path.read_bytes()))


def checked_statements(networks: TrainedNetworks) -> list[CheckedStatement]:
    """All of them, in the order of their names."""
    return sorted(_checked(networks), key=lambda one: (one.name[0] != "T", one.name))


def _checked(networks: TrainedNetworks) -> Iterator[CheckedStatement]:
    quick = networks.plan.quick
    yield from sampling_statements(networks, quick)
    yield calibration_statement(networks, quick)
    yield generalisation_statement(networks)
    yield lower_bound_statement(networks)
    yield corruption_statement(networks)
    yield sample_size_statement(networks, quick)
    yield uncertainty_statement(networks)
    yield consistency_statement()
    yield optimality_statement(networks)
    yield contradiction_statement(networks)


def study_result(statements: Sequence[CheckedStatement]) -> StudyResult:
    return StudyResult(
        NAME,
        "The paper's theorems and propositions, computed",
        "Which of the paper's bounds hold as stated, which with a correction, and which do not?",
        (_summary(statements), *(one.sentence for one in statements)),
        (verdict_table(statements), *(table for one in statements for table in one.tables)),
        tuple(figure for one in statements for figure in one.figures),
    )


def _summary(statements: Sequence[CheckedStatement]) -> str:
    counts = Counter(one.verdict for one in statements)
    parts = []
    for verdict in VERDICTS:
        named = ", ".join(one.name for one in statements if one.verdict == verdict)
        label = verdict.replace("this", "a")
        parts.append(f"{counts[verdict]} {_plural(label, counts[verdict])} ({named or 'none'})")
    return f"Of the paper's {len(statements)} theorems and propositions, {'; '.join(parts)}."


def _plural(verdict: str, count: int) -> str:
    if count == 1:
        return verdict
    return verdict.replace("holds", "hold").replace("does not", "do not")


def result_path(plan: ExperimentPlan, folder: Path) -> Path:
    """Depends on the training data, the sizes, the printed numbers and the code of the study."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    printed = files("lpf_paper").joinpath("printed.toml").read_bytes()
    code = hashlib.sha256(b"".join([*(one.read_bytes() for one in sources), printed])).hexdigest()
    text = json.dumps([GENERATION, train_spec(plan).key, plan.quick, plan.ablation_entities, code])
    return folder / NAME / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"
