"""`python -m tickwire.kernel MODULE ...`: compile kernel modules into the cache."""

import sys

from tickwire.errors import TickwireError
from tickwire.kernel.compiling import compile_here

if __name__ == "__main__":
    try:
        compile_here(sys.argv[1:])
    except TickwireError as error:
        sys.exit(str(error))
