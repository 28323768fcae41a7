"""`python -m tickwire_features --config FILE`."""

from __future__ import annotations

import sys

from tickwire.runtime.service import run_service
from tickwire_features.service import FeaturesService

if __name__ == "__main__":
    sys.exit(run_service(FeaturesService))
