"""Verify a ledger from its raw records alone.

The verifier shares no code with the writer except ``formats.py``, so that the same mistake cannot
be in both: it has its own tree and its own JSON parsing, and uses the package ``rfc8785`` to decide
what is canonical.
"""

from lpf.ledger.verifier.findings import Finding, Verification
from lpf.ledger.verifier.verify import verify

__all__ = ["Finding", "Verification", "verify"]
