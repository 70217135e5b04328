"""``prunus tune``: one study, several processes, the best model."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

import prunus
from prunus.cli import main, tune
from prunus.cli import study as study_module
from prunus.cli.study import FIRST, best_trial, suggest, work
from tests.cli.tables import Shell, csv, options_of

EPOCH = ("--max-epochs", "1", "--batch-size", "32")


@pytest.fixture
def search(tmp_path: Path) -> tuple[object, ...]:
    """A command that searches options for the small table; a target is to follow."""
    return ("tune", csv(tmp_path / "t.csv"), "--out", tmp_path / "t.prunus", "--force", *EPOCH)


def trials_of(out: object) -> list[Any]:
    return list(optuna.load_study(study_name=None, storage=f"sqlite:///{out}.study.db").trials)


def test_a_study_is_searched_gone_on_with_and_its_best_saved(shell: Shell, search: tuple[object, ...]) -> None:
    command = (*search, "--target", "kind", "--drop", "price")
    first = shell.json(*command, "--trials", 2)
    assert first["trials"] == 2
    assert "best so far" in shell.err
    more = shell.json(*command, "--trials", 3)
    assert more["trials"] == 3
    assert "2 of 3 trials are done" in shell.err
    assert more["hold_out"]["accuracy"] >= first["hold_out"]["accuracy"]
    trials = trials_of(search[3])
    assert more["hold_out"]["accuracy"] == pytest.approx(max(trial.value for trial in trials))
    assert trials[0].params == FIRST["all"]
    assert prunus.load(Path(str(search[3]))).feature_names_in_.tolist() == ["size", "color"]
    said = shell.mistake(*search, "--target", "price", "--quiet")
    assert "is a study of another problem (target: 'kind' there, 'price' here)" in said


def test_several_processes_share_a_study(shell: Shell, search: tuple[object, ...]) -> None:
    assert shell.json(*search, "--target", "price", "--trials", 4, "--jobs", 2)["trials"] == 4
    complete = [trial for trial in trials_of(search[3]) if trial.state.name == "COMPLETE"]
    drawn = [str(trial.params) for trial in complete]  # others came too late to draw
    assert len(set(drawn)) == len(drawn) == 4


@pytest.mark.parametrize(
    ("space", "fixed", "expected"),
    [
        ("paper", {}, {"leaf": {"mlp"}}),
        ("paper", {"leaf": "constant"}, {"leaf": {"constant"}, "hidden_layer_sizes": None}),
        ("all", {}, {"pieces": {0, 8}, "leaf": {"constant", "linear", "mlp"}}),
        ("all", {"routing": "hard"}, {"leaf": {"constant", "linear", "additive"}, "split": {"linear"}}),
        ("all", {"max_split_features": 2}, {"split": {"linear"}}),
        ("all", {"routing": "hard", "max_leaf_features": 2}, {"leaf": {"linear"}, "pieces": {0}}),
    ],
)
def test_a_search_tries_only_what_goes_together(space: str, fixed: Any, expected: dict[str, Any]) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [suggest(study.ask(), space, fixed) for _ in range(20)]
    names = {name for options in drawn for name in options}
    assert names <= options_of(prunus.ArgminTreeRegressor())
    for name, values in expected.items():
        assert values == ({options[name] for options in drawn} if name in names else None)
    if not fixed:
        of_paper = {"depth", "pruning_strength", "split", "leaf", "hidden_layer_sizes", "dropout"}
        assert names == of_paper | ({"pieces", "learning_rate"} if space == "all" else set())


def test_a_trial_too_many_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    study = optuna.create_study(direction="maximize")
    other = study.ask()  # of another process, which began it after this one had counted
    real = study_module._states
    counts: Iterator[list[str]] = iter([[], []])

    def states(study: optuna.Study) -> list[str]:
        if (before := next(counts, None)) is not None:
            return before
        if len(study.trials) == 2 and study.trials[0].state.name == "RUNNING":
            study.tell(other, 1.0)
        return real(study)

    monkeypatch.setattr(study_module, "_states", states)
    work(study, lambda _: pytest.fail("one trial is enough"), 1, report=lambda _: None)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL"]


def test_options_that_are_given_are_not_searched(shell: Shell, search: tuple[object, ...]) -> None:
    command, out = (*search, "--target", "price", "--trials", 2), Path(str(search[3]))
    fixed = ("--leaf", "mlp", "--depth", 3, "--pieces", 4, "--hidden-layer-sizes", "8,8", "--pruning-strength", 0.5)
    record, tree = shell.json(*command, *fixed), prunus.load(out)
    assert (tree.leaf, tree.depth, tree.pieces, tree.hidden_layer_sizes) == ("mlp", 3, 4, (8, 8))
    assert record["best_options"].items() >= {"leaf": "mlp", "depth": 3, "pieces": 4, "pruning_strength": 0.5}.items()
    assert all(set(trial.params) == {"split", "learning_rate", "dropout"} for trial in trials_of(out))
    assert "study of another problem (options:" in shell.mistake(*command, "--leaf", "linear", "--quiet")
    hard = ("--kind", "hard", "--max-leaf-nodes", 4, "--study", out.with_name("hard.db"))
    assert shell.json(*command, "--trials", 1, *hard)["model"]["routing"] == "hard"
    assert prunus.load(out).max_leaf_nodes == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_option_that_cannot_be_used_is_one_line(search: tuple[object, ...], jobs: int) -> None:
    options = ("--target", "price", "--depth", 99, "--jobs", jobs, "--quiet")
    command = [sys.executable, "-m", "prunus", *map(str, (*search, *options))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1  # broke: a line for each process, and one that points at them
    assert done.stderr.startswith("prunus tune: --depth must be")
    assert not Path(f"{search[3]}.study.db").exists()


@pytest.mark.parametrize("failed", [1, 2])
def test_processes_that_fail_are_told_of_once(
    shell: Shell, search: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, failed: int
) -> None:
    def run(search: tune.Search) -> list[tune.Failure]:
        if failed == 1:
            tune._work(search)
        return [tune.Failure("an error in prunus: oops", 3)] * failed

    monkeypatch.setattr(tune, "_run_workers", run)
    options = ("--target", "price", "--trials", "1", "--jobs", "2", "--quiet")
    code = main([str(word) for word in (*search, *options)])
    said = "a process failed, others went on: " if failed == 1 else ""
    assert shell.capsys.readouterr().err == f"prunus tune: {said}an error in prunus: oops\n"
    assert code == (0 if failed == 1 else 3)


@pytest.mark.parametrize(("score", "expected"), [(0.7, 1), (0.74, 1), (0.76, 0)])
def test_a_tree_without_splits_must_be_clearly_better(score: float, expected: int) -> None:
    study = optuna.create_study(direction="maximize")
    for value, leaves in ((score, 1), (0.7, 3), (0.6, 8)):
        trial = study.ask()
        trial.set_user_attr("leaves", leaves)
        study.tell(trial, value)
    assert best_trial(study, noise=0.05).number == expected


def test_a_search_prefers_splits_and_says_if_no_tree_has_any(
    shell: Shell, search: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (*search, "--target", "price", "--leaf", "constant")
    said = shell(*command, "--trials", 1, "--pruning-strength", 1e6)
    assert "depth 0, 1 leaf (constant)" in said
    assert "note      No split was worth keeping: all rows end in one leaf." in said
    assert "No trial whose tree has splits predicts the held-out rows as well." in said
    Path(f"{search[3]}.study.db").unlink()
    monkeypatch.setitem(FIRST, "all", FIRST["all"] | {"pruning_strength": 1e3})
    monkeypatch.setattr(tune, "main_score", lambda *_: ("r2", 0.5))
    record = shell.json(*command, "--trials", 4)
    assert record["best_trial"] > 1  # broke: the first of equal scores, whose tree has one leaf
    assert record["model"]["leaves"] > 1
