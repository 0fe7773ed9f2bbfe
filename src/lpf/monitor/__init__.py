"""Monitoring: sealed predictions scored when outcomes arrive, drift of texts, answers and sources,
and a warning when probabilities can no longer be trusted."""

from lpf.monitor.monitoring import (
    BetAgainstPromise,
    MonitoredParts,
    Monitoring,
    MonitorPlan,
    PredicateReport,
    monitored,
)
from lpf.monitor.outcomes import Outcome, Outcomes, outcomes_from_facts, outcomes_from_file
from lpf.monitor.trust_file import StoredTrust, TrustFile, write_trust
from lpf.monitor.windows import WindowSize

__all__ = [
    "BetAgainstPromise",
    "MonitorPlan",
    "MonitoredParts",
    "Monitoring",
    "Outcome",
    "Outcomes",
    "PredicateReport",
    "StoredTrust",
    "TrustFile",
    "WindowSize",
    "monitored",
    "outcomes_from_facts",
    "outcomes_from_file",
    "write_trust",
]
