"""A sampler of options for several processes that work on one study."""

from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial

__all__ = ["NumberedSampler"]


class NumberedSampler(BaseSampler):
    """Optuna's default sampler, with a seed for each trial that depends on its number, and a given first trial.

    A single process thus draws the same options each time it is run, and no two processes draw the same options. The
    first trial does not come from Optuna's queue, because two processes may take the same entry of it from SQLite.

    Parameters
    ----------
    first : dict
        The options of the first trial, by name.
    seed : int

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    >>> study = optuna.create_study(sampler=NumberedSampler({"x": 0.5}, seed=0))
    >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    >>> study.trials[0].params
    {'x': 0.5}
    """

    def __init__(self, first: dict[str, Any], seed: int) -> None:
        self.first = first
        self.seed = seed
        self._last: tuple[int, TPESampler] | None = None

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the options that are drawn together."""
        return {} if self._is_first(study, trial) else self._sampler(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Draw options together."""
        return {} if self._is_first(study, trial) else self._sampler(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw one option independently of the others."""
        if param_name in self.first and self._is_first(study, trial):
            return self.first[param_name]
        return self._sampler(trial).sample_independent(study, trial, param_name, param_distribution)

    def _is_first(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether all earlier trials have failed."""
        return all(other.state.name == "FAIL" for other in study.get_trials(deepcopy=False)[: trial.number])

    def _sampler(self, trial: FrozenTrial) -> TPESampler:
        if self._last is None or self._last[0] != trial.number:
            seed = (self.seed * 1_000_003 + trial.number) % 2**32
            self._last = trial.number, TPESampler(seed=seed)
        return self._last[1]
