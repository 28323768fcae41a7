"""`python -m tickwire_inference --config FILE`: the inference service as a process."""

import sys

from tickwire.runtime.service import run_service
from tickwire_inference.service import InferenceService

if __name__ == "__main__":
    sys.exit(run_service(InferenceService))
