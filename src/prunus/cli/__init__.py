"""The command ``prunus``: it writes results to stdout, and progress and errors, in one line each, to stderr."""

import argparse
import json
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from prunus import __version__
from prunus.cli.command import Outcome, Parser, common_options, plain
from prunus.cli.errors import describe, exit_code
from prunus.cli.group import Group
from prunus.cli.registry import COMMANDS

__all__ = ["main"]

EXIT_CODES = (
    "exit codes: 0 done; 1 the input cannot be used, stderr says why; 2 wrong arguments; 3 an error in prunus; "
    "130 interrupted"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after ``prunus``; by default those of the process.

    Returns
    -------
    int
        The exit code, see `EXIT_CODES`.

    Examples
    --------
    >>> main(["predict", "no_such_model.prunus", "table.csv"])
    1
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = next((word for word in given if word in COMMANDS), None)
    options = argparse.Namespace(traceback="--traceback" in given)
    group = Group(name)
    if group.has_nothing_to_do:
        return 0
    try:
        group.silence()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            module: Any = None if name is None else import_module(COMMANDS[name].module)
            options = _parse(name, module, given)
            options.command_line = shlex.join(["prunus", *given])
            options.group = group
            group.begin()
            _print(module.run(options), as_json=options.json)
    except SystemExit as error:  # argparse has written the reason
        return error.code if isinstance(error.code, int) else 2
    except BrokenPipeError:  # the reader of our output, such as head, has stopped reading
        with suppress(OSError):
            sys.stdout.close()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        text = f"prunus{'' if name is None else ' ' + name}: {describe(error)}\n"
        if group.may_tell(text):
            if options.traceback:
                traceback.print_exc()
            sys.stderr.write(text)
        return exit_code(error)
    finally:
        group.end()
    return 0


def _parse(chosen: str | None, module: Any, given: list[str]) -> argparse.Namespace:
    """Parse the arguments; those that the chosen command does not know are an error of this command."""
    parser, own = _parsers(chosen, module)
    options, unknown = parser.parse_known_args(given)
    if unknown:
        own.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _parsers(chosen: str | None, module: Any) -> tuple[Parser, Parser]:
    """Make the parser, and that of the chosen command, which alone has options: the modules take seconds to import."""
    parser = found = Parser(
        prog="prunus", description="Decision trees that one can look at, for tables in files.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"prunus {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, entry in COMMANDS.items():
        shared = [common_options()] if name == chosen else []
        own = commands.add_parser(name, help=entry.help, description=entry.help, parents=shared, allow_abbrev=False)
        if name == chosen:
            own.epilog = getattr(module, "EPILOG", None)
            module.add_arguments(own)
            found = own
    return parser, found


def _print(outcome: Outcome, *, as_json: bool) -> None:
    text = json.dumps(plain(outcome.record), ensure_ascii=False) if as_json else outcome.text
    if text:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def _show_warning(message: Any, *_: Any) -> None:
    sys.stderr.write(f"prunus: warning: {' '.join(str(message).split())}\n")
