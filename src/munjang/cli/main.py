"""`munjang`: arguments in, an exit code out.

The only place that turns errors into messages and exit codes (the tree in errors.py). Results go to standard output, everything else to
standard error. Commands are imported when they are called, and the parser is not imported for `munjang --help`, so that it stays quick.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper
from typing import Any, NoReturn

from munjang.cli.commands import COMMANDS, COMPLETION_REQUEST, CommandEntry, find, help_page, load_command
from munjang.cli.error_hints import after_missing_file, after_usage_error, drop_false_hints
from munjang.cli.show import note, one_line
from munjang.errors import InputError, MunjangError, NoSpace, UsageError

INTERRUPTED = 130
INTERNAL = 70
"""A bug of ours; sysexits.h calls it EX_SOFTWARE."""

DEBUG = "MUNJANG_DEBUG"
"""Set in the environment, a bug shows its traceback."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; never raises."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without Hangul gets escapes, not a crash
    with warnings.catch_warnings():
        _show_warnings_as_notes(arguments)
        try:
            return _invoke(arguments)
        except KeyboardInterrupt as error:
            return _report_interrupt(error, arguments)
        except OSError as error:
            return _of_system(error)
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            note(f"internal error: {type(error).__name__}: {one_line(str(error))}\n  this is a bug; set {DEBUG}=1 to see the traceback")
            return INTERNAL


def _invoke(arguments: Sequence[str]) -> int:
    is_completion = bool(os.environ.get(COMPLETION_REQUEST))
    if not is_completion and list(arguments) in ([], ["--help"]):  # without the parser, whose import takes most of the time
        print(help_page())
        return 0
    import typer
    from typer.main import get_command

    from munjang.cli.group import ParseError, app

    command = get_command(app)
    if is_completion:
        from munjang.cli.completion import complete

        return complete(command)
    code = 0
    try:
        with command.make_context("munjang", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as exit_:
        code = exit_.exit_code
    except MunjangError as error:
        said = drop_false_hints(str(error.for_shell or error), _options_of(arguments), _is_option)
        note(f"{said}{after_missing_file(error)}")
        code = error.exit_code
    except ParseError as error:
        note(_usage(error))
        code = UsageError.exit_code
    sys.stdout.flush()
    return code


def _report_interrupt(error: KeyboardInterrupt, arguments: Sequence[str]) -> int:
    """Say that the work was stopped and, of a training, the very command that goes on with it."""
    from munjang.train.interrupt import Interrupted

    if not isinstance(error, Interrupted):
        note("interrupted")
        return INTERRUPTED
    again = shlex.join(["munjang", *arguments, *([] if "--resume" in arguments else ["--resume"])])
    note(f"{error}\n  resume with: {'the same command and --resume' if error.is_shared else again}")
    return error.exit_code


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "munjang"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if message.startswith("Usage:"):  # a bare call of a command that has sub-commands: the whole help
        return f"a file or a sub-command is missing\n{message}"
    plain = one_line(message).replace("Value error, ", "")
    return plain + after_usage_error(plain, path)


def _of_system(error: OSError) -> int:
    if error.errno == errno.EPIPE:  # whoever read our output had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if error.errno == errno.ENOSPC:
        note("the disk is full; the old state is intact")
        return NoSpace.exit_code
    where = f"{error.filename}: " if error.filename else ""
    note(f"{where}{error.strerror or error}{after_missing_file(error)}")
    return InputError.exit_code


def _options_of(arguments: Sequence[str]) -> frozenset[str]:
    """Return the options of the command that the arguments call, and of its group's sub-commands where they do not say which."""
    words = [word for word in arguments if not word.startswith("-")]
    entry = find(words[0]) if words else None
    if entry is None:
        return frozenset(("--help", "--version"))
    options = _options_by_name(entry)
    return options[words[1]] if len(words) > 1 and words[1] in options else frozenset().union(*options.values())


@cache
def _options_by_name(entry: CommandEntry) -> dict[str, frozenset[str]]:
    """Return the options of a command, or of each of its sub-commands, by name."""
    command = load_command(entry)
    own = frozenset(name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)) | {"--help"}
    inner = getattr(command, "commands", {})
    return {
        name: own.union(*((*parameter.opts, *parameter.secondary_opts) for parameter in each.params)) for name, each in inner.items()
    } or {"": own}


def _is_option(name: str) -> bool:
    """Say whether any command has an option of that name."""
    return any(name in _options_of([entry.name]) for entry in COMMANDS)


def _show_warnings_as_notes(arguments: Sequence[str]) -> None:
    """Make a warning one line on standard error; Python's own deprecations are for developers and stay silent."""

    def show(message: Warning | str, *_where: Any) -> None:
        # a warning may speak differently to someone who cannot call Python
        said = getattr(message, "for_shell", str(message))
        note(one_line(drop_false_hints(said, _options_of(arguments), _is_option)))

    warnings.simplefilter("default", UserWarning)
    for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.showwarning = show  # type: ignore[assignment]


if __name__ == "__main__":  # `accelerate launch … -m munjang.cli.main` starts each of its processes so
    main()
