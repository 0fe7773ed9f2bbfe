"""Our expectation-maximisation compared with crowd-kit's on the same votes."""

from __future__ import annotations

import numpy as np
import pytest
from test_baseline_parts import crowd

from lpf.baselines.dawid_skene import fit_confusions


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The (inplace|copy) keyword:pandas.errors.Pandas4Warning")
def test_crowd_kit_finds_the_same_matrices_and_answers() -> None:
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    votes, _ = crowd()
    table = pd.DataFrame(
        {"task": votes.segments.owner, "worker": votes.workers, "label": votes.values}
    )
    referee = DawidSkene(n_iter=200, tol=1e-9).fit(table)
    found = fit_confusions(votes, 4, 3, borrowed=0.0)
    # Shares of values are smoothed by one vote each, hence the last digits.
    np.testing.assert_allclose(np.exp(found.log_shares), referee.priors_.sort_index(), atol=1e-3)
    for worker in range(4):
        theirs = referee.errors_.loc[worker].sort_index()[[0, 1, 2]].to_numpy()
        np.testing.assert_allclose(np.exp(found.log_chances[worker]), theirs, atol=2e-3)
    theirs = referee.probas_.sort_index()[[0, 1, 2]].to_numpy()
    np.testing.assert_allclose(found.posterior(votes), theirs, atol=5e-3)
