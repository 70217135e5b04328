"""``python -m prunus`` and the console script are the command ``prunus``."""

import os
import signal
import sys
from types import FrameType

__all__ = ["run"]

IMPORTS = "<frozen importlib._bootstrap>"
INTERRUPTED = 130


def run() -> int:
    """Run the command; Ctrl-C ends it with one line on stderr, also while modules are imported."""
    signal.signal(signal.SIGINT, _leave)
    from prunus.cli import main  # not before Ctrl-C is handled

    signal.signal(signal.SIGINT, _interrupt)
    try:
        return main()
    finally:
        signal.signal(signal.SIGINT, _leave)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not in an import: extension modules turn it into other errors, or abort."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORTS:
            _leave(number, frame)
        frame = frame.f_back
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os.write(2, b"prunus: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(run())
