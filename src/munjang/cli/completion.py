"""`munjang completion`: a script that lets a shell complete commands, options and names of models; and the answers it asks for.

The script calls `munjang` again with the words so far in the environment; `main` hands such a call to `complete`. Both the scripts and the
way of asking are typer's.
"""

from __future__ import annotations

import contextlib
import os
from typing import Annotated, Any, Literal

import typer

from munjang.cli.options import JsonOption, examples, new_app
from munjang.cli.show import emit

PROGRAM = "munjang"
ASKED = "_MUNJANG_COMPLETE"
"""Set in the environment by a shell that asks for completions."""

app = new_app()


@app.command(epilog=examples('eval "$(munjang completion bash)"', "munjang completion fish | source"))
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    as_json: JsonOption = False,
) -> None:
    """Print the script that lets a shell complete commands and options.

    Put the example's line into ~/.bashrc (zsh: ~/.zshrc, after compinit; fish: ~/.config/fish/config.fish).
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name=PROGRAM, complete_var=ASKED, shell=shell).strip()
    emit({"shell": shell, "script": script}) if as_json else print(script)


def is_asked() -> bool:
    """Say whether a shell asks for completions in this call."""
    return bool(os.environ.get(ASKED))


def complete(command: Any) -> int:
    """Print the completions that a shell asks for; never a message, which would land in the middle of somebody's line."""
    from typer._completion_classes import completion_init
    from typer.completion import shell_complete

    completion_init()
    with contextlib.suppress(Exception):
        return shell_complete(command, {}, PROGRAM, ASKED, os.environ[ASKED])
    return 1
