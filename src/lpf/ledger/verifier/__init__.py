"""Checks a ledger from its raw records alone.

Shares no code with the writer, so that one mistake cannot hide in both: its own tree, its own
reading of JSON, and the package ``rfc8785`` as judge of what is canonical.
"""

from lpf.ledger.verifier.findings import Finding, Verification
from lpf.ledger.verifier.verify import verify

__all__ = ["Finding", "Verification", "verify"]
