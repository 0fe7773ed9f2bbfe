"""The studies of the paper's experimental part, and our own."""

from lpf.experiments.plan import Plan
from lpf.experiments.studies.ablations.study import AblationsStudy
from lpf.experiments.studies.book import Study
from lpf.experiments.studies.compliance.study import ComplianceStudy
from lpf.experiments.studies.copying.study import CopyingStudy
from lpf.experiments.studies.domains.study import DomainsStudy
from lpf.experiments.studies.files.study import FilesStudy
from lpf.experiments.studies.grid.study import PaperGridStudy
from lpf.experiments.studies.knobs.study import PaperKnobsStudy
from lpf.experiments.studies.provenance.study import ProvenanceStudy
from lpf.experiments.studies.robustness.study import RobustnessStudy
from lpf.experiments.studies.transfer.study import TransferStudy


def all_studies(plan: Plan) -> list[Study]:
    """In reading order; that of files only where there are some."""
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
    ]
    return [*studies, FilesStudy()] if plan.files else studies


__all__ = ["all_studies"]
