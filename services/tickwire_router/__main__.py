"""`python -m tickwire_router --config FILE`: the router as a process."""

import sys

from tickwire.runtime.service import run_service
from tickwire_router.service import RouterService

if __name__ == "__main__":
    sys.exit(run_service(RouterService))
