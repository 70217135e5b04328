"""Targets, one file each: a tree predicts classes, numbers, or columns of the table itself."""

from prunus.targets.agreement import disagreement, remarks
from prunus.targets.classes import Classes
from prunus.targets.columns import Columns
from prunus.targets.links import Link
from prunus.targets.log_numbers import LogNumbers
from prunus.targets.numbers import Numbers
from prunus.targets.path_rows import PathRows
from prunus.targets.scale import Scale
from prunus.targets.storage import target_from_record, target_to_record
from prunus.targets.target import Target
from prunus.targets.two_classes import TwoClasses

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
