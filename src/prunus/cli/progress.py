"""Progress as lines of text, for a stderr that is not a terminal."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from prunus.cli.command import say

if TYPE_CHECKING:
    from prunus.training import EpochRecord

__all__ = ["EpochLines"]

SECONDS = 5.0
"""Seconds between two lines, at least."""


class EpochLines:
    """A callback that writes losses to stderr, unless it is a terminal, where a progress bar is shown.

    Parameters
    ----------
    options : argparse.Namespace
        The options of the command; with ``quiet`` nothing is written.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.last = time.monotonic()
        self.epoch = 0.0

    def on_epoch_end(self, record: "EpochRecord") -> None:
        """Write a line if the last one is at least `SECONDS` old, or if epochs are counted from 1 again."""
        before, self.epoch = self.epoch, record["epoch"]
        if sys.stderr.isatty():
            return
        if self.epoch <= before:
            say(self.options, "now a tree whose rows follow one path learns to imitate the soft tree")
        if time.monotonic() - self.last < SECONDS:
            return
        self.last = time.monotonic()
        losses = "  ".join(f"{name} {record[name]:.4g}" for name in ("train_loss", "valid_loss") if name in record)
        say(self.options, f"epoch {record['epoch']:g}  {losses}")
