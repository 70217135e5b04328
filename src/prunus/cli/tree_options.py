"""The kinds of trees, and the options of the estimators on the command line."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import prunus
from prunus.cli.command import flag, number, quoted, value
from prunus.cli.errors import CliError

if TYPE_CHECKING:
    from prunus.cli.problem import FileProblem, Problem
    from prunus.cli.targets import Target

__all__ = [
    "KINDS",
    "OF_KINDS",
    "OPTIONS",
    "READABLE",
    "add_kind_option",
    "add_tree_options",
    "check_auto",
    "check_kind",
    "check_loss",
    "check_task",
    "chosen_options",
    "kinds_of",
    "new_estimator",
    "option_text",
]

READABLE = "readable"
KINDS = {
    READABLE: "a small tree that a person can read, searched as a whole",
    "soft": "the paper's tree: a row that is undecided at a split follows both routes",
    "hard": "such a tree in which each row follows one path",
    "forest": "several trees whose predictions are averaged",
}
GRADIENT = ("soft", "hard", "forest")
"""The kinds that are learned by gradient descent."""
TREES = 16
"""Trees of a forest whose number is not given: the default of the estimators, whose import takes seconds."""
AUTO = "auto"
SPLITS = {
    "linear": "a linear function of the columns",
    "elu": "a linear function, passed through an exponential linear unit",
    "mlp": "a small neural network that the nodes share",
    "sparse_mlp": "a network that combines a few columns at a time",
}
"""What the splits of `prunus.nn.registry.SPLITS` are; the names stand here again as torch takes seconds to import."""
LEAVES = {
    "constant": "a value for each node",
    "additive": "a value for each node plus one linear model for all nodes",
    "linear": "a linear model for each node",
    "mlp": "a neural network on columns and routes",
}
"""What the leaves of `prunus.nn.registry.LEAVES` are."""
ROUTINGS = {"soft": "all its routes", "hard": "one path"}
"""Which way a row takes through the tree, see `prunus.tree.Tree.routing`."""
LOSSES = {
    "classification": ("cross_entropy", "binary_cross_entropy"),
    "regression": ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"),
}
"""The losses for each task."""


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


class Option(NamedTuple):
    """An option of the estimators."""

    help: str
    type: Callable[[str], Any] | None = None
    """How its value is read; None if it has choices, or is text."""
    choices: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = GRADIENT
    """The kinds of trees that have it."""
    takes_auto: bool = False
    """Whether its value may be "auto", where a command takes that."""
    loss: str | None = None
    """The loss that it belongs to."""

    def settings(self, *, auto: bool) -> dict[str, Any]:
        """What argparse takes; `auto` says whether the command takes options that are "auto"."""
        if self.choices is not None:
            return {"help": self.help, "choices": [*self.choices, *[AUTO] * (auto and self.takes_auto)]}
        metavar = {int: "N", _whole_or_auto: "N", _sizes: "N,N", float: "X", None: "NAME"}[self.type]
        return {
            "help": self.help,
            "metavar": metavar,
            "type": _whole_or_auto if auto and self.takes_auto else self.type,
        }


OPTIONS: dict[str, Option] = {
    "depth": Option("depth of the tree before pruning, at most 16", int, takes_auto=True),
    "pruning_strength": Option("how strongly nodes that few rows reach are pruned", float),
    "routing": Option(
        f"which way a row takes through the tree: {_words(ROUTINGS)}", choices=tuple(ROUTINGS), kinds=("forest",)
    ),
    "split": Option(f"how a node decides: {_words(SPLITS)}", choices=tuple(SPLITS)),
    "max_split_features": Option("largest number of columns in a split", int, kinds=tuple(KINDS)),
    "max_leaf_nodes": Option("largest number of leaves", int, kinds=tuple(KINDS), takes_auto=True),
    "max_leaf_features": Option(
        "largest number of terms in the formula of a leaf, or of columns with --kind hard --leaf linear",
        int,
        kinds=tuple(KINDS),
    ),
    "min_samples_leaf": Option("smallest number of training rows in a leaf", _whole_or_auto, kinds=(READABLE,)),
    "leaf": Option(f"what a prediction is made from: {_words(LEAVES)}", choices=tuple(LEAVES), takes_auto=True),
    "hidden_layer_sizes": Option(
        "number of units in each hidden layer of the network, with --leaf mlp (default: 64,64,64)", _sizes
    ),
    "dropout": Option("share of these units that each training step leaves out at random (default: 0)", float),
    "pieces": Option("number of pieces that the range of each number is cut into (default: 0)", int, takes_auto=True),
    "loss": Option(
        f"the loss that training minimizes; for classes: {', '.join(LOSSES['classification'])}; for numbers: "
        f"{', '.join(LOSSES['regression'])}",
        choices=(*LOSSES["classification"], *LOSSES["regression"]),
    ),
    "quantile": Option("the quantile to predict, with --loss quantile (default: 0.5)", float, loss="quantile"),
    "tweedie_power": Option(
        "the variance grows like this power of the mean, from 1 to 2, with --loss tweedie (default: 1.5)",
        float,
        loss="tweedie",
    ),
    "max_epochs": Option("largest number of passes over the rows", int),
    "batch_size": Option("number of rows in a training step", int),
    "learning_rate": Option("largest learning rate", float),
    "weight_decay": Option("how strongly training draws the weights towards zero", float),
    "device": Option("cpu, cuda, ... (default: a GPU if there is one and the table has many rows)"),
}
_CHOSEN = ("leaf", "depth", "pieces")
"""The options that --auto sets."""
OF_KINDS = (*OPTIONS, "auto", "tuning_seconds")
"""The options of the tree, all of which belong to some kinds of trees only."""
_CURES = {
    "auto": "leave it out: readable trees choose by themselves",
    "depth": "use --max-leaf-nodes, which limits the size of a readable tree",
    "leaf": "use --max-leaf-features, the terms in the formula of a leaf",
    "routing": "use --kind hard for a tree in which each row follows one path",
}
"""What else a user may have wanted, by option."""


def add_tree_options(parser: argparse.ArgumentParser, *names: str, auto: bool = False) -> None:
    """Add these options, or all of them if no names are given, and the seed.

    `auto` says whether the command takes options that are "auto".
    """
    group = parser.add_argument_group("the tree and its training; options that are not given have good defaults")
    for name in names or OPTIONS:
        group.add_argument(as_written(name), **OPTIONS[name].settings(auto=auto))
    if auto:
        flag(
            group,
            "--auto",
            "let candidates compete, and learn with the best: --leaf auto --depth auto --pieces auto, but for "
            "those of them that are given",
        )
        value(
            group,
            "--tuning-seconds",
            "X",
            "start no new candidate after this many seconds; the first always runs (default: no limit)",
            type=float,
        )
    value(group, "--seed", "N", "seed of all random choices (default: 0)", type=_seed, default=0)


def as_written(name: str) -> str:
    """An option as one types it on the command line.

    >>> as_written("max_depth")
    '--max-depth'
    """
    return f"--{name.replace('_', '-')}"


def check_auto(options: argparse.Namespace) -> None:
    """Raise an error if seconds are given for a choice, but nothing is to be chosen, or if they have a wrong value."""
    if options.tuning_seconds is None:
        return
    given = chosen_options(options)
    if not any(given.get(name) == AUTO for name in _CHOSEN):
        raise CliError("--tuning-seconds must be left out unless an option is auto, got it without --auto")
    if not options.tuning_seconds > 0:
        raise CliError(f"--tuning-seconds must be above 0, got {number(options.tuning_seconds)}")


def check_loss(options: argparse.Namespace) -> None:
    """Raise an error if the parameter of a loss is given with another loss, or has a wrong value."""
    for name, option in OPTIONS.items():
        if option.loss is None or getattr(options, name) is None:
            continue
        value = getattr(options, name)
        if options.loss != option.loss:
            given = "without --loss" if options.loss is None else f"with --loss {options.loss}"
            raise CliError(f"{as_written(name)} must be left out unless the loss is {option.loss}, got it {given}")
        low = 1 if name == "tweedie_power" else 0
        if not low < value < low + 1:
            raise CliError(f"{as_written(name)} must be between {low} and {low + 1}, got {number(value)}")


def check_task(loss: str | None, target: "Target") -> None:
    """Raise an error if a loss is for another task than that of the target."""
    if loss is None or loss in LOSSES[target.task]:
        return
    what, other = ("classes", "regression") if target.is_classes else ("numbers", "classification")
    raise CliError(
        f"--loss must be one of {', '.join(LOSSES[target.task])} for a target of {what}, got {loss}; choose one of "
        f"them, or add --task {other}"
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


def add_kind_option(parser: argparse.ArgumentParser, *kinds: str) -> None:
    """Add the choice between these kinds, of which the first is the default."""
    words = "; ".join(f"{kind}, {KINDS[kind]}" for kind in kinds)
    parser.add_argument("--kind", choices=kinds, help=f"what is learned (default: {kinds[0]}): {words}")


def kinds_of(option: str) -> tuple[str, ...]:
    """The kinds that an option belongs to.

    Examples
    --------
    >>> kinds_of("min_samples_leaf"), kinds_of("depth")
    (('readable',), ('soft', 'hard', 'forest'))
    """
    others: dict[str, tuple[str, ...]] = {"class_weight": tuple(KINDS), "forest": ("forest",)}
    return OPTIONS[option].kinds if option in OPTIONS else others.get(option, GRADIENT)


def check_kind(options: argparse.Namespace, names: tuple[str, ...]) -> None:
    """Settle which kind is meant, and how many trees a forest has; an error if an option belongs to other kinds.

    Parameters
    ----------
    options : argparse.Namespace
        Its `kind` and `forest` are set.
    names : tuple of str
        The options that belong to some kinds only.
    """
    is_default = options.kind is None
    if is_default:
        options.kind = READABLE if options.forest is None else "forest"
    for name in names:
        if getattr(options, name) not in (None, False) and options.kind not in kinds_of(name):
            raise CliError(_of_another_kind(name, options.kind, is_default=is_default))
    if options.kind == "forest" and options.forest is None:
        options.forest = TREES


def _of_another_kind(name: str, kind: str, *, is_default: bool) -> str:
    kinds = kinds_of(name)
    belongs = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    given = f"--kind {kind}, the default" if is_default and kind == READABLE else f"--kind {kind}"
    cure = _CURES.get(name, "leave it out") if kind == READABLE or name == "routing" else "leave it out"
    return f"{as_written(name)} belongs to --kind {belongs}, got it with {given}; add --kind {kinds[0]}, or {cure}"


def new_estimator(
    problem: "Problem | FileProblem", kind: str, options: dict[str, Any], n_trees: int | None = None
) -> Any:
    """A new estimator of a kind for the task, with these options; `n_trees` is for forests."""
    from prunus.fitting.training_options import nested  # scikit-learn takes a second to import

    family = {READABLE: "ReadableTree", "forest": "ArgminForest"}.get(kind, "ArgminTree")
    made: Any = getattr(prunus, family + ("Classifier" if problem.target.is_classes else "Regressor"))
    if kind == "forest":
        options = options | {"n_trees": n_trees}
    if kind != READABLE and problem.trains_on_all:
        options = options | {"early_stopping_rounds": None}
    estimator = made()
    estimator.set_params(**(options if kind == READABLE else nested(options)))
    return estimator
