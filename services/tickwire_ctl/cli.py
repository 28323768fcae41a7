"""The `tickwire` command."""

from __future__ import annotations

import click

import tickwire
from tickwire_ctl.activate import activate
from tickwire_ctl.anchor import anchor
from tickwire_ctl.c_header import header
from tickwire_ctl.compile import compile_command
from tickwire_ctl.demo import demo
from tickwire_ctl.doctor import doctor
from tickwire_ctl.down import down
from tickwire_ctl.interrupt import Interrupt
from tickwire_ctl.kill import kill, unkill
from tickwire_ctl.options import pass_interrupt
from tickwire_ctl.ring import ring_group
from tickwire_ctl.status import status
from tickwire_ctl.tail import tail
from tickwire_ctl.top import top
from tickwire_ctl.up import up
from tickwire_models.cli import model_group

_OWN_ENDINGS = {"demo", "up", "anchor", "tail"}
"""Commands that find a way out of their own when they are interrupted; the others just end."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tickwire.__version__, prog_name="tickwire")
@pass_interrupt
@click.pass_context
def main(context: click.Context, interrupt: Interrupt) -> None:
    """High-frequency trading signals from deep models, through lock-free shared-memory rings."""
    if context.invoked_subcommand not in _OWN_ENDINGS:
        context.with_resource(interrupt.immediate())


_COMMANDS = (
    compile_command,
    demo,
    up,
    anchor,
    status,
    top,
    tail,
    down,
    doctor,
    kill,
    unkill,
    ring_group,
    header,
    model_group,
)

model_group.add_command(activate)
for command in _COMMANDS:
    main.add_command(command)
