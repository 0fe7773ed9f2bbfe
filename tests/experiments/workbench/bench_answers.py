"""What methods answer on the bench of the little lesson, and somewhere else to ask them."""

from __future__ import annotations

from lpf.experiments.answered import Answered
from lpf.experiments.cells import Cell, DomainData, Exam
from small_lessons import LESSON, bench

ELSEWHERE = Exam(DomainData("legal", seed=1000, changes=("items=3",)), entities=20)


def answered(method: str, exam: Exam = Exam(), **settings: bool | float | str) -> Answered:  # noqa: B008
    return bench().answered(Cell(LESSON, exam, method, tuple(settings.items())))
