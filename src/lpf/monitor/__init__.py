"""Monitoring: sealed predictions scored when outcomes arrive, drift of texts, answers and sources,
and a warning when probabilities can no longer be trusted.

Queries import this package to read the verdict, so it imports nothing else by itself:
``monitor.monitoring`` has the rest.
"""

from lpf.monitor.trust_file import StoredTrust, TrustFile, write_trust

__all__ = ["StoredTrust", "TrustFile", "write_trust"]
