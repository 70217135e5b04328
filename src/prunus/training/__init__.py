"""Training: the loop, and its samples, losses, optimizers, schedules, callbacks and checkpoints."""

from prunus.training.callbacks import Callback, EpochRecord, ProgressBar, as_callbacks
from prunus.training.losses import LOSSES, Loss, NamedLoss, find_loss
from prunus.training.many import Run, train_many
from prunus.training.optimizers import QHAdam
from prunus.training.options import TrainerOptions
from prunus.training.samples import Samples
from prunus.training.trainer import History, Trainer

__all__ = [
    "LOSSES",
    "Callback",
    "EpochRecord",
    "History",
    "Loss",
    "NamedLoss",
    "ProgressBar",
    "QHAdam",
    "Run",
    "Samples",
    "Trainer",
    "TrainerOptions",
    "as_callbacks",
    "find_loss",
    "train_many",
]
