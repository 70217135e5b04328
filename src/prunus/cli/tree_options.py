"""The options of the estimators on the command line."""

import argparse
from typing import Any

from prunus.cli.mistakes import Mistake
from prunus.cli.rendering import number, quoted

__all__ = [
    "LEAVES",
    "LOSSES",
    "OF_KINDS",
    "OPTIONS",
    "ROUTINGS",
    "SPLITS",
    "add_tree_options",
    "check_auto",
    "check_loss",
    "check_task",
    "chosen_options",
    "option_text",
]

AUTO = "auto"
SPLITS = {
    "linear": "a linear function of the columns",
    "elu": "a linear function, passed through an exponential linear unit",
    "mlp": "a small neural network that the nodes share",
    "sparse_mlp": "a network that combines a few columns at a time",
}
"""The names and words of `prunus.nn.registry.SPLITS`, here again because torch takes seconds to import."""
LEAVES = {
    "constant": "a value for each node",
    "additive": "a value for each node plus one linear model for all nodes",
    "linear": "a linear model for each node",
    "mlp": "a neural network on columns and routes",
}
"""The names of `prunus.nn.registry.LEAVES`, in words."""
ROUTINGS = {"soft": "all its routes", "hard": "one path"}
"""Which way a row takes through the tree, see `prunus.tree.Tree.routing`."""


LOSSES = {
    "classification": ("cross_entropy", "binary_cross_entropy"),
    "regression": ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"),
}
"""The losses for each task."""
PARAMETERS = {"quantile": "quantile", "tweedie_power": "tweedie"}
"""The loss that each of these options belongs to."""


def _words(kinds: dict[str, str]) -> str:
    return "; ".join(f"{name}, {words}" for name, words in kinds.items())


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = (0,)
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"must be positive integers with commas between them, got {quoted(text)}")
    return sizes


def _whole_or_auto(text: str) -> int | str:
    if text == AUTO:
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer or auto, got {quoted(text)}") from None


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to {2**32 - 1}, got {quoted(text)}")
    return int(text)


OPTIONS: dict[str, dict[str, Any]] = {
    "depth": {"type": int, "metavar": "N", "help": "depth of the tree before pruning, at most 16"},
    "pruning_strength": {"type": float, "metavar": "X", "help": "how strongly nodes that few rows reach are pruned"},
    "routing": {"choices": list(ROUTINGS), "help": f"which way a row takes through the tree: {_words(ROUTINGS)}"},
    "split": {"choices": list(SPLITS), "help": f"how a node decides: {_words(SPLITS)}"},
    "max_split_features": {"type": int, "metavar": "N", "help": "largest number of columns in a split"},
    "max_leaf_nodes": {"type": int, "metavar": "N", "help": "largest number of leaves"},
    "max_leaf_features": {
        "type": int,
        "metavar": "N",
        "help": "largest number of terms in the formula of a leaf, or of columns with --kind hard --leaf linear",
    },
    "min_samples_leaf": {"type": _whole_or_auto, "metavar": "N", "help": "smallest number of training rows in a leaf"},
    "leaf": {"choices": list(LEAVES), "help": f"what a prediction is made from: {_words(LEAVES)}"},
    "hidden_layer_sizes": {
        "type": _sizes,
        "metavar": "N,N",
        "help": "number of units in each hidden layer of the network, with --leaf mlp (default: 64,64,64)",
    },
    "dropout": {
        "type": float,
        "metavar": "X",
        "help": "share of these units that each training step leaves out at random (default: 0)",
    },
    "pieces": {
        "type": int,
        "metavar": "N",
        "help": "number of pieces that the range of each number is cut into (default: 0)",
    },
    "loss": {
        "choices": [name for names in LOSSES.values() for name in names],
        "help": "the loss that training minimizes; for classes: "
        + ", ".join(LOSSES["classification"])
        + "; for numbers: "
        + ", ".join(LOSSES["regression"]),
    },
    "quantile": {"type": float, "metavar": "X", "help": "the quantile to predict, with --loss quantile (default: 0.5)"},
    "tweedie_power": {
        "type": float,
        "metavar": "X",
        "help": "the variance grows like this power of the mean, from 1 to 2, with --loss tweedie (default: 1.5)",
    },
    "max_epochs": {"type": int, "metavar": "N", "help": "largest number of passes over the rows"},
    "batch_size": {"type": int, "metavar": "N", "help": "number of rows in a training step"},
    "learning_rate": {"type": float, "metavar": "X", "help": "largest learning rate"},
    "weight_decay": {"type": float, "metavar": "X", "help": "how strongly training draws the weights towards zero"},
    "device": {
        "metavar": "NAME",
        "help": "cpu, cuda, ... (default: a GPU if there is one and the table has many rows)",
    },
}


_CHOSEN = ("leaf", "depth", "pieces")
"""The options that --auto sets."""
_AUTO_OPTIONS: dict[str, dict[str, Any]] = {
    "leaf": {"choices": [*LEAVES, AUTO]},
    **{name: {"type": _whole_or_auto} for name in ("depth", "pieces", "max_leaf_nodes")},
}
"""What is different about the options that may be "auto", where a command takes that."""
OF_KINDS = (*OPTIONS, "auto", "tuning_seconds")
"""The options of the tree, all of which belong to some kinds of trees only."""


def add_tree_options(parser: argparse.ArgumentParser, *names: str, auto: bool = False) -> None:
    """Add these options, or all of them if no names are given, and the seed.

    `auto` says whether the command takes options that are "auto".
    """
    group = parser.add_argument_group("the tree and its training; options that are not given have good defaults")
    for name in names or OPTIONS:
        group.add_argument(
            f"--{name.replace('_', '-')}", **OPTIONS[name] | (_AUTO_OPTIONS.get(name, {}) if auto else {})
        )
    if auto:
        group.add_argument(
            "--auto",
            action="store_true",
            help="let candidates compete, and learn with the best: --leaf auto --depth auto --pieces auto, but for "
            "those of them that are given",
        )
        group.add_argument(
            "--tuning-seconds",
            type=float,
            metavar="X",
            help="start no new candidate after this many seconds; the first always runs (default: no limit)",
        )
    group.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of all random choices (default: 0)")


def check_auto(options: argparse.Namespace) -> None:
    """Raise an error if seconds are given for a choice, but nothing is to be chosen, or if they have a wrong value."""
    if options.tuning_seconds is None:
        return
    given = chosen_options(options)
    if not any(given.get(name) == AUTO for name in _CHOSEN):
        raise Mistake("--tuning-seconds must be left out unless an option is auto, got it without --auto")
    if not options.tuning_seconds > 0:
        raise Mistake(f"--tuning-seconds must be above 0, got {number(options.tuning_seconds)}")


def check_loss(options: argparse.Namespace) -> None:
    """Raise an error if the parameter of a loss is given with another loss, or has a wrong value."""
    for name, loss in PARAMETERS.items():
        value, option = getattr(options, name), f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if options.loss != loss:
            given = "without --loss" if options.loss is None else f"with --loss {options.loss}"
            raise Mistake(f"{option} must be left out unless the loss is {loss}, got it {given}")
        low = 1 if name == "tweedie_power" else 0
        if not low < value < low + 1:
            raise Mistake(f"{option} must be between {low} and {low + 1}, got {number(value)}")


def check_task(loss: str | None, task: str) -> None:
    """Raise an error if a loss is for another task, "classification" or "regression"."""
    if loss is None or loss in LOSSES[task]:
        return
    what, other = ("classes", "regression") if task == "classification" else ("numbers", "classification")
    raise Mistake(
        f"--loss must be one of {', '.join(LOSSES[task])} for a target of {what}, got {loss}; choose one of them, or "
        f"add --task {other}"
    )


def option_text(value: Any) -> str:
    """The value of an option as one types it on the command line.

    >>> option_text((256, 256)), option_text(0.1)
    ('256,256', '0.1')
    """
    return ",".join(map(str, value)) if isinstance(value, tuple) else number(value)


def chosen_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as arguments for an estimator."""
    names = (*OPTIONS, "tuning_seconds")
    given = {name: getattr(options, name) for name in names if getattr(options, name, None) is not None}
    chosen: dict[str, Any] = dict.fromkeys(_CHOSEN, AUTO) if getattr(options, "auto", False) else {}
    if getattr(options, "kind", None) == "hard":
        chosen["routing"] = "hard"
    return chosen | given | {"random_state": options.seed}
