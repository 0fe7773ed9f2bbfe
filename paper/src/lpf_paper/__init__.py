"""The paper's experiments: studies, the numbers the paper prints, and the report.

Built on the documented names of ``lpf`` only. ``lpf experiment paper`` runs it.
"""

__version__ = "0.1.0"
