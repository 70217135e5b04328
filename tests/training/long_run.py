"""A run that writes a checkpoint after each epoch. As a program, given the file's name, it waits to be killed."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from prunus.training import EpochRecord
from tests.training.problems import Outcome, refresh_masses, run, samples, tree_model

EPOCHS = 70
LAST = 60
"""The program stops after this epoch and waits."""


def wait(record: EpochRecord) -> None:
    if record["epoch"] >= LAST:
        time.sleep(600)


def long_run(
    checkpoint: Path | None, *, resume: bool = False, callback: Callable[[EpochRecord], None] | None = None
) -> Outcome:
    return run(
        model=tree_model(dropout=0.3),
        train=samples(weighted=True),
        valid=samples(30, seed=1),
        refresh_masses=refresh_masses,
        callbacks=[] if callback is None else [callback],
        resume=resume,
        max_epochs=EPOCHS,
        schedule="plateau",
        average=0.9,
        checkpoint=checkpoint,
        checkpoint_every=1,
    )


if __name__ == "__main__":
    long_run(Path(sys.argv[1]), callback=wait)
