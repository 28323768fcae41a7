"""Errors of Tickwire as one line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tickwire.errors import ConfigError, TickwireError


class _WrongInput(click.ClickException):
    # The configuration or the command line is wrong; anything else that fails exits with 1.
    exit_code = 2


def reports_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a `TickwireError` or a wrong value into a message and an exit code, without a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (TickwireError, ValueError) as error:
            kind = _WrongInput if isinstance(error, ConfigError | ValueError) else click.ClickException
            raise kind(str(error)) from error

    return run
