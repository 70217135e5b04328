"""The data of the paper's tables: where each set comes from, how it is read, split and scaled.

``load("Glass", folder)`` is all that the experiments need. Files are searched in the folder that is given, then in the
cache folder (the environment variable ``PRUNUS_DATA``, or ``~/.cache/prunus``), then at their public source.
"""

from experiments.data.cache import DamagedDataError, MissingDataError, cache_folder
from experiments.data.loading import SPLIT_SEED, PaperSet, load
from experiments.data.sets import CLUSTER_TARGETS, PAPER_SETS, SETS, STAND_INS
from experiments.data.sources import SOURCES

__all__ = [
    "CLUSTER_TARGETS",
    "PAPER_SETS",
    "SETS",
    "SOURCES",
    "SPLIT_SEED",
    "STAND_INS",
    "DamagedDataError",
    "MissingDataError",
    "PaperSet",
    "cache_folder",
    "load",
]
