"""The report of an experiment: exhibits drawn as HTML, PNG, SVG and CSV."""

from lpf_paper.report.experiment_report import write_experiment_report

__all__ = ["write_experiment_report"]
