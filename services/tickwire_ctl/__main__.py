"""Entry of the `tickwire` command, and of `python -m tickwire_ctl`."""

import sys

from tickwire_ctl.interrupt import Interrupt

_OWN_KERNELS = "tickwire.ring.kernels"
"""What the command itself runs, compiled by its import where that has not been done yet."""


def main() -> None:
    """Run the command; Ctrl-C is taken care of before everything else is imported."""
    interrupt = Interrupt()
    from tickwire.kernel.cache import is_compiled, mark_compiled

    compiled = is_compiled(_OWN_KERNELS)
    if not compiled and sys.stderr.isatty():
        sys.stderr.write("compiling the ring's kernels (once, some seconds)\n")
    from tickwire_ctl.cli import main as tickwire

    if not compiled:
        mark_compiled(_OWN_KERNELS)
    tickwire(obj=interrupt)


if __name__ == "__main__":
    main()
