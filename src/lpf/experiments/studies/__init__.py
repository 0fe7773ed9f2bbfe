"""The studies of the paper's experimental part, and our own."""

from lpf.experiments.plan import Plan
from lpf.experiments.studies.ablations import AblationsStudy
from lpf.experiments.studies.book import Study
from lpf.experiments.studies.copying_sources import CopyingStudy
from lpf.experiments.studies.domains import DomainsStudy
from lpf.experiments.studies.files import FilesStudy
from lpf.experiments.studies.main import MainStudy
from lpf.experiments.studies.paper_grid import PaperGridStudy
from lpf.experiments.studies.paper_knobs import PaperKnobsStudy
from lpf.experiments.studies.provenance import ProvenanceStudy
from lpf.experiments.studies.robustness import RobustnessStudy
from lpf.experiments.studies.transfer import TransferStudy


def all_studies(plan: Plan) -> list[Study]:
    """In reading order; that of files only where there are some."""
    studies: list[Study] = [
        MainStudy(),
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
