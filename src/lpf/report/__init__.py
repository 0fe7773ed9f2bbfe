"""Reports for people: pages that need nothing but themselves, and the figures and numbers in them.

``charts``, ``documents``, ``drawing`` and ``page`` are the parts from which other packages can
build reports in the same style. Needs matplotlib (``pip install 'lpf[report]'``), but not before
something is drawn.
"""

from lpf.report import charts, documents, drawing, page
from lpf.report.domains_report import write_domains_report
from lpf.report.training_report import write_training_report

__all__ = [
    "charts",
    "documents",
    "drawing",
    "page",
    "write_domains_report",
    "write_training_report",
]
