"""A group of commands that are imported when they are used: those that need the extra `models` cost nobody else."""

from __future__ import annotations

import importlib
from typing import Any

import click


class LazyGroup(click.Group):
    """Knows where its commands are; a missing library is named when the command runs, and not before."""

    def __init__(self, *arguments: Any, places: dict[str, str] | None = None, **settings: Any) -> None:
        """Take the places as `command name: "module:attribute"`."""
        super().__init__(*arguments, **settings)
        self._places = places or {}

    def list_commands(self, context: click.Context) -> list[str]:
        """Return all names, imported or not."""
        return sorted({*super().list_commands(context), *self._places})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a command, imported now if it was not before."""
        if name not in self._places:
            return super().get_command(context, name)
        module, _, attribute = self._places[name].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("tickwire"):
                raise
            return _missing(name, error.name or "a library")
        return command


def _missing(name: str, library: str) -> click.Command:
    text = f"needs {library}: pip install 'tickwire[models]'"

    def refuse(**_arguments: Any) -> None:
        raise click.ClickException(f"tickwire model {name} {text}")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=refuse, help=f"({text})", context_settings=settings)
