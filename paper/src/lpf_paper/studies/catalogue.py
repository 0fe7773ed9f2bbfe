"""All studies: those of the paper's experiments, and our own."""

from __future__ import annotations

from lpf_paper.plan import ExperimentPlan
from lpf_paper.studies.ablations import AblationsStudy
from lpf_paper.studies.compliance import ComplianceStudy
from lpf_paper.studies.copying import CopyingStudy
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.files import FilesStudy
from lpf_paper.studies.grid import PaperGridStudy
from lpf_paper.studies.knobs import PaperKnobsStudy
from lpf_paper.studies.next_evidence import NextEvidenceStudy
from lpf_paper.studies.provenance import ProvenanceStudy
from lpf_paper.studies.robustness import RobustnessStudy
from lpf_paper.studies.study import Study
from lpf_paper.studies.theorems.theorems_study import TheoremsStudy
from lpf_paper.studies.transfer import TransferStudy


def all_studies(plan: ExperimentPlan) -> list[Study]:
    """In reading order; the study of files only if the plan has files."""
    studies: list[Study] = [
        ComplianceStudy(),
        DomainsStudy("paper"),
        DomainsStudy("hard"),
        PaperKnobsStudy(),
        PaperGridStudy(),
        AblationsStudy(),
        RobustnessStudy(),
        TransferStudy(),
        CopyingStudy(),
        ProvenanceStudy(),
        NextEvidenceStudy(),
        TheoremsStudy(),
    ]
    return [*studies, FilesStudy()] if plan.files else studies


__all__ = ["all_studies"]
