"""Options of the estimators, on the command line."""

import argparse
from typing import Any

__all__ = ["add_tree_options", "chosen_options"]

_OPTIONS: dict[str, dict[str, Any]] = {
    "depth": {"type": int, "metavar": "N", "help": "depth of the tree before pruning, at most 12"},
    "pruning_strength": {"type": float, "metavar": "X", "help": "how strongly nodes that few rows reach are pruned"},
    "split": {"choices": ["linear", "elu", "mlp", "sparse"], "help": "how a node decides"},
    "leaf": {"choices": ["constant", "additive", "linear", "mlp"], "help": "how nodes predict"},
    "pieces": {"type": int, "metavar": "N", "help": "pieces that the range of each number is cut into"},
    "max_epochs": {"type": int, "metavar": "N", "help": "passes over the rows"},
    "batch_size": {"type": int, "metavar": "N", "help": "rows a step"},
    "learning_rate": {"type": float, "metavar": "X", "help": "largest learning rate"},
    "weight_decay": {"type": float, "metavar": "X", "help": "how strongly weights are drawn to zero"},
    "device": {"metavar": "NAME", "help": "cpu, cuda, ...; a GPU by default if there is one and rows are many"},
}


def add_tree_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add these options, or all of them, and the seed."""
    group = parser.add_argument_group("the tree and its training, chosen by itself if not given")
    for name in names or _OPTIONS:
        group.add_argument(f"--{name.replace('_', '-')}", **_OPTIONS[name])
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (default: 0)")


def chosen_options(options: argparse.Namespace) -> dict[str, Any]:
    """Those that were given, as the estimators take them."""
    given = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name, None) is not None}
    return given | {"random_state": options.seed}
