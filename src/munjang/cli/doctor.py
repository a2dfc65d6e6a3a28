"""`munjang doctor`: is this installation fit, and what is to be done where it is not?"""

from __future__ import annotations

from dataclasses import asdict

import typer

from munjang.cli.doctor_findings import Finding
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit, one_line
from munjang.wording import count

app = new_app()


@app.command(epilog=examples("munjang doctor", "munjang doctor --json"))
def doctor(as_json: JsonOption = False) -> None:
    """Check the installation, and say what to do.

    Looks at Python, packages and extras, cores and threads, instruction sets, memory, folders, SQLite and models. The exit code is 1 when
    something will not work; a note alone is no reason for it.
    """
    findings = examine()
    problems = [finding for finding in findings if finding.state == "problem"]
    if as_json:
        emit({"ok": not problems, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    if problems:
        raise typer.Exit(1)


def examine() -> list[Finding]:
    """Look at everything and return what was found, in the order in which it is shown."""
    from munjang.cli.doctor_machine import machine
    from munjang.cli.doctor_models import models
    from munjang.cli.doctor_software import software
    from munjang.models.registry import models_home

    return [*software(), *machine(models_home().parent), *models()]


def _show(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{finding.state:<8} {finding.name:<{width}}  {one_line(finding.found)}")
        if finding.advice is not None:
            print(f"{'':<8} {'':<{width}}  → {one_line(finding.advice)}")
    counts = {state: sum(finding.state == state for finding in findings) for state in ("problem", "note")}
    print(f"{count(counts['problem'], 'problem')}, {count(counts['note'], 'note')}")
