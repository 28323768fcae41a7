"""`python -m tickwire_ingest --config FILE`."""

import sys

from tickwire.runtime.service import run_service
from tickwire_ingest.service import IngestService

if __name__ == "__main__":
    sys.exit(run_service(IngestService))
