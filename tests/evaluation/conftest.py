"""What several folders of these tests share stands beside this file, and is found from each."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
