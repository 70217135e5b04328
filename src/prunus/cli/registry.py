"""The table of the subcommands."""

from typing import NamedTuple

__all__ = ["COMMANDS"]


class Entry(NamedTuple):
    """A subcommand.

    Parameters
    ----------
    module : str
        The module with its functions ``add_arguments(parser)`` and ``run(options)``.
    help : str
        What it does.
    """

    module: str
    help: str


COMMANDS = {
    "fit": Entry("prunus.cli.fit", "Learn a tree, or a forest, that predicts a column of a table."),
    "predict": Entry("prunus.cli.predict", "Predict the rows of a table, as CSV on stdout or in a file."),
    "evaluate": Entry("prunus.cli.evaluate", "Compare predictions with the truth."),
    "cluster": Entry("prunus.cli.cluster", "Learn a hierarchy of clusters of the rows of a table."),
    "tune": Entry("prunus.cli.tune", "Search for the best options, in one study for several processes."),
    "show": Entry("prunus.cli.show", "Show a learned tree as text, as a web page or as a picture."),
    "export": Entry("prunus.cli.export", "Write a learned tree for other programs: ONNX, SQL, Python, rules."),
    "info": Entry("prunus.cli.info", "Show versions, backends and devices of this machine."),
    "demo": Entry("prunus.cli.demo", "Train on a small table that is part of prunus, and compare with scikit-learn."),
}
