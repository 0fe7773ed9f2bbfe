"""How sure an answer is: what the evidence leaves open, and what the model does not know."""

from lpf.uncertainty.decompose import Uncertainty, decompose, entropy

__all__ = ["Uncertainty", "decompose", "entropy"]
