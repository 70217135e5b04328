"""Training: batches in memory, optimizers, schedules, early stopping, checkpoints."""

from prunus.training.callbacks import Callback, EpochRecord
from prunus.training.losses import LOSSES, Loss, find_loss
from prunus.training.optimizers import QHAdam
from prunus.training.options import TrainingOptions
from prunus.training.progress import ProgressBar
from prunus.training.samples import Samples
from prunus.training.trainer import History, Trainer

__all__ = [
    "LOSSES",
    "Callback",
    "EpochRecord",
    "History",
    "Loss",
    "ProgressBar",
    "QHAdam",
    "Samples",
    "Trainer",
    "TrainingOptions",
    "find_loss",
]
