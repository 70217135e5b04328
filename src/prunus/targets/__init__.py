"""Targets, one file each: a tree predicts classes, numbers, or columns of the table itself."""

from prunus.targets.agreement import disagreement
from prunus.targets.classes import Classes
from prunus.targets.columns import Columns
from prunus.targets.numbers import Numbers
from prunus.targets.storage import target_from_record, target_to_record
from prunus.targets.target import Target

__all__ = ["Classes", "Columns", "Numbers", "Target", "disagreement", "target_from_record", "target_to_record"]
