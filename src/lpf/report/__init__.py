"""Reports for people: pages that need nothing but themselves, and the figures and numbers in them.

Needs matplotlib (``pip install 'lpf[report]'``), but not before something is drawn.
"""

from lpf.report.domains_report import write_domains_report
from lpf.report.training_report import write_training_report
from lpf_paper.report.experiment_report import write_experiment_report

__all__ = ["write_domains_report", "write_experiment_report", "write_training_report"]
