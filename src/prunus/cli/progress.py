"""Progress where no bar can be shown: now and then a line."""

import argparse
import sys
import time

from prunus.cli.command import say
from prunus.training import EpochRecord

__all__ = ["EpochLines"]

SECONDS = 5.0
"""Between lines."""


class EpochLines:
    """A callback that writes the losses to stderr, unless it is a terminal, which has a bar."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.last = time.monotonic()

    def on_epoch_end(self, record: EpochRecord) -> None:
        """Write a line if the last was long ago."""
        if sys.stderr.isatty() or time.monotonic() - self.last < SECONDS:
            return
        self.last = time.monotonic()
        losses = "  ".join(f"{name} {record[name]:.4g}" for name in ("train_loss", "valid_loss") if name in record)
        say(self.options, f"epoch {record['epoch']:g}  {losses}")
