"""Targets, one file each: a tree predicts classes, numbers, or columns of the table itself."""

from prunus.targets.classes import Classes, TwoClasses
from prunus.targets.links import Link
from prunus.targets.numbers import Columns, LogNumbers, Numbers
from prunus.targets.scale import Scale
from prunus.targets.storage import target_from_record, target_to_record
from prunus.targets.target import PathRows, Target, disagreement, remarks

__all__ = [
    "Classes",
    "Columns",
    "Link",
    "LogNumbers",
    "Numbers",
    "PathRows",
    "Scale",
    "Target",
    "TwoClasses",
    "disagreement",
    "remarks",
    "target_from_record",
    "target_to_record",
]
