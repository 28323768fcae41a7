"""`tickwire compile`: fill the kernel cache, for an image or before the first start of a host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tickwire.errors import TickwireError
from tickwire.kernel import cache_root, compile_kernels, is_compiled
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.host import KERNEL_MODULES
from tickwire_ctl.progress import CompileLine


@click.command("compile")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="TICKWIRE_KERNEL_CACHE",
    show_default="the user's cache folder",
    help="Where machine code goes; processes that set TICKWIRE_KERNEL_CACHE to it load it, also read-only.",
)
@reports_errors
def compile_command(cache: Path | None) -> None:
    """Compile all kernels of this release for this host's processor.

    A cache serves the same release, Python, Numba and processor (or NUMBA_CPU_NAME); anything else compiles anew.
    """
    if cache is not None:
        os.environ["TICKWIRE_KERNEL_CACHE"] = str(cache.resolve())  # the compiling processes look there too
    with CompileLine(sys.stderr) as line:
        compile_kernels(KERNEL_MODULES, line)
    missing = [name for name in KERNEL_MODULES if not is_compiled(name)]
    if missing:
        raise TickwireError(f"kernel cache {cache_root()}: must be writable to be filled, is not; use --cache")
    click.echo(f"{len(KERNEL_MODULES)} kernel modules are compiled in {cache_root()}")
