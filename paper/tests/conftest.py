"""The tests of lpf-paper use the same builders and servers as those of lpf."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
for folder in (ROOT, ROOT / "tests", ROOT / "tests" / "evaluation", ROOT / "tests" / "report"):
    sys.path.insert(0, str(folder))

from shared_fixtures import commands_built_once as commands_built_once  # noqa: E402
from shared_fixtures import one_thread as one_thread  # noqa: E402
