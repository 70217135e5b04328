"""The command ``prunus``: it writes results to stdout, and progress and errors, in one line each, to stderr."""

import argparse
import io
import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Any

from prunus import __version__
from prunus.cli.command import Outcome, Parser, common_options, plain
from prunus.cli.errors import describe, exit_code

__all__ = ["COMMANDS", "main"]


COMMANDS = {
    "fit": "Learn a tree, or a forest, that predicts a column of a table.",
    "predict": "Predict the rows of a table, as CSV on stdout or in a file.",
    "evaluate": "Compare predictions with the truth.",
    "cluster": "Learn a hierarchy of clusters of the rows of a table.",
    "tune": "Search for the best options, in one study for several processes.",
    "show": "Show a learned tree as text, as a web page or as a picture.",
    "export": "Write a learned tree for other programs: ONNX, SQL, Python, rules.",
    "info": "Show versions, backends and devices of this machine.",
    "demo": "Train on a small table that is part of prunus, and compare with scikit-learn.",
}
"""What each subcommand does: a module of this name, with ``add_arguments(parser)`` and ``run(options)``."""
EXIT_CODES = (
    "exit codes: 0 done; 1 the input cannot be used, stderr says why; 2 wrong arguments; 3 an error in prunus; "
    "130 interrupted"
)
LEARNING = ("fit", "cluster")
"""The commands that all processes run; others are run by the first one alone."""


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
            module: Any = None if name is None else import_module(f"prunus.cli.{name}")
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
        if group.reports(text):
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
    for name, words in COMMANDS.items():
        shared = [common_options()] if name == chosen else []
        own = commands.add_parser(name, help=words, description=words, parents=shared, allow_abbrev=False)
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


class Group:
    """The processes of this run of the command; by the variables that torchrun sets, or else this one alone.

    Parameters
    ----------
    command : str or None
        The name of the subcommand.
    """

    def __init__(self, command: str | None) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
        self.is_first = self.size == 1 or os.environ["RANK"] == "0"
        self.learns = self.size > 1 and command in LEARNING
        self._store: Any = None
        self._silenced, self._joined = ExitStack(), ExitStack()

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether another process runs the command alone."""
        return not self.is_first and not self.learns

    def silence(self) -> None:
        """Drop what this process would print, if it is not the first one."""
        if not self.is_first:
            self._silenced.enter_context(redirect_stdout(io.StringIO()))
            self._silenced.enter_context(redirect_stderr(io.StringIO()))

    def begin(self) -> None:
        """Meet the other processes, if there are any."""
        if not self.learns:
            return
        from prunus.training.processes import join_processes, leave_processes  # torch takes seconds to import

        self._store = join_processes()
        self._joined.callback(leave_processes)

    def wait_for_all(self) -> None:
        """Return when all processes have come here."""
        if self._store is not None:
            from prunus.training.processes import processes

            processes().gather(None)

    def reports(self, error: str) -> bool:
        """End the silence, and return whether this process reports an error: each is reported once."""
        self.end()
        if self._store is not None:
            with suppress(Exception):  # without the others, errors are reported anyway
                return bool(self._store.add(f"prunus: {error}", 1) == 1)
        return self.is_first or self._store is not None

    def leave(self) -> None:
        """Leave the other processes: what is left to do, the first one does alone."""
        with suppress(Exception):  # they may have left before
            self._joined.close()

    def end(self) -> None:
        """Leave the other processes, and end the silence."""
        self.leave()
        self._silenced.close()
