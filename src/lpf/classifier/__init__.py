"""LPF, and what it is compared with, behind scikit-learn's interface: lists of evidence in, classes
and probabilities out.

Importing this room imports neither torch nor scikit-learn; ``fit`` needs torch, nothing needs the
other.
"""

from lpf.classifier.baseline import BaselineClassifier
from lpf.classifier.estimator import LPFClassifier
from lpf.classifier.explanation import Explanation

__all__ = ["BaselineClassifier", "Explanation", "LPFClassifier"]
