"""Reading tables from files in many formats, with notes on what was found."""

from prunus.cli.reading.columns import Dropped, drop_useless
from prunus.cli.reading.source import Source, add_reading_options, check_finite, read_source
from prunus.cli.reading.targets import Target, read_classes, read_target

__all__ = [
    "Dropped",
    "Source",
    "Target",
    "add_reading_options",
    "check_finite",
    "drop_useless",
    "read_classes",
    "read_source",
    "read_target",
]
