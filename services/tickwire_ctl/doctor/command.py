"""`tickwire doctor`: what of this host stands in the way of low latency, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from tickwire.runtime.config import load_run
from tickwire_ctl.doctor.examination import examine
from tickwire_ctl.doctor.finding import Finding, Verdict
from tickwire_ctl.doctor.tree import Tree
from tickwire_ctl.errors import reports_errors
from tickwire_ctl.options import config_option, set_option

EXIT_STRICT = 1
_COLOURS = {Verdict.GOOD: "green", Verdict.ADVICE: "yellow", Verdict.BAD: "red", Verdict.UNKNOWN: "cyan"}


@click.command()
@config_option
@set_option
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.option("--strict", is_flag=True, help="Exit code 1 unless everything is good or unknown.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default=Path("/"), hidden=True)
@reports_errors
def doctor(config: Path, overrides: tuple[str, ...], as_json: bool, strict: bool, root: Path) -> None:
    """Examine the host: cores, clock, memory, limits, GPU; say what was found, what to do and why. Exit code 0."""
    findings = examine(Tree(root), load_run(config, overrides=overrides))
    if as_json:
        print(msgspec.json.encode(findings).decode())
    else:
        _show(findings)
    if strict and any(finding.verdict in (Verdict.ADVICE, Verdict.BAD) for finding in findings):
        sys.exit(EXIT_STRICT)


def _show(findings: list[Finding]) -> None:
    for finding in findings:
        verdict = click.style(f"{finding.verdict:8}", fg=_COLOURS[finding.verdict])
        click.echo(f"{verdict} {finding.subject}: {finding.found}")
        if finding.remedy:
            click.echo(f"{'do':>8} {finding.remedy}")
        click.echo(f"{'why':>8} {finding.why}")
