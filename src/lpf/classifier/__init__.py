"""LPF and its baselines with scikit-learn's interface: lists of evidence in, classes and
probabilities out.

Importing this package imports neither torch nor scikit-learn. ``fit`` needs torch; nothing needs
scikit-learn.
"""

from lpf.classifier.baseline_classifier import BaselineClassifier
from lpf.classifier.lpf_classifier import LPFClassifier

__all__ = ["BaselineClassifier", "LPFClassifier"]
