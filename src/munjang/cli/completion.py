"""`munjang completion`: a script that lets a shell complete commands, options and names of models; and the answers it asks for.

The script calls `munjang` again with the words so far in the environment; `main` hands such a call to `complete`. Both the scripts and the
way of asking are typer's.
"""

from __future__ import annotations

import contextlib
import os
from typing import Annotated, Any, Literal

import typer

from munjang.cli.commands import COMPLETION_REQUEST
from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit

PROGRAM = "munjang"

app = new_app()


@app.command(epilog=examples('eval "$(munjang completion bash)"', "munjang completion fish | source"))
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    as_json: JsonOption = False,
) -> None:
    """Print the completion script for bash, zsh or fish.

    Add the example's line to ~/.bashrc (zsh: ~/.zshrc, after compinit; fish: ~/.config/fish/config.fish).
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION_REQUEST, shell=shell).strip()
    emit({"shell": shell, "script": script}) if as_json else print(script)


def complete(command: Any) -> int:
    """Print the completions that a shell asks for; never a message, which would land in the middle of somebody's line."""
    from typer._completion_classes import completion_init
    from typer.completion import shell_complete

    completion_init()
    with contextlib.suppress(Exception):
        return shell_complete(command, {}, PROGRAM, COMPLETION_REQUEST, os.environ[COMPLETION_REQUEST])
    return 1
