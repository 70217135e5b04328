"""A fit in three steps over plain records: `prepare` a run, `train` its model, `finish` the tree."""

from prunus.fitting.finish import finish
from prunus.fitting.options import FitOptions
from prunus.fitting.run import Fitted, Run
from prunus.fitting.train import Trained, train

__all__ = ["FitOptions", "Fitted", "Run", "Trained", "finish", "train"]
