"""The error of an estimator that was not fitted: ours and, if it is installed, scikit-learn's.

Import this module only to raise the error: it imports scikit-learn, which nothing else here needs.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from lpf.errors import TrainingError

if TYPE_CHECKING or find_spec("sklearn") is None:

    class NotFittedError(TrainingError, ValueError, AttributeError):
        """An estimator was used before it was fitted."""

else:
    from sklearn import exceptions

    class NotFittedError(TrainingError, exceptions.NotFittedError):
        """An estimator was used before it was fitted."""
