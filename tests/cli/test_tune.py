"""``prunus tune``: one study, several processes, the best model."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest

import prunus
from prunus.cli import main, tune
from prunus.cli import study as study_module
from prunus.cli.study import FIRST, SPACES, best_trial, suggest, work
from tests.cli.tables import Shell, csv, frame

EPOCH = ("--max-epochs", "1", "--batch-size", "32")


def test_a_study_is_searched_gone_on_with_and_its_best_saved(shell: Shell, tmp_path: Path) -> None:
    data, out = csv(tmp_path / "t.csv"), tmp_path / "t.prunus"
    command = ("tune", data, "--target", "kind", "--drop", "price", "--out", out, *EPOCH)
    first = shell.json(*command, "--trials", 2)
    assert first["trials"] == 2
    assert "best so far" in shell.err
    more = shell.json(*command, "--trials", 3, "--force")
    assert more["trials"] == 3
    assert "2 of 3 trials are done" in shell.err
    assert more["hold_out"]["accuracy"] >= first["hold_out"]["accuracy"]
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{out}.study.db")
    assert more["hold_out"]["accuracy"] == pytest.approx(study.best_value)
    assert study.trials[0].params == FIRST["all"]
    assert prunus.load(out).feature_names_in_.tolist() == ["size", "color"]


def test_several_processes_share_a_study(shell: Shell, tmp_path: Path) -> None:
    data, out = csv(tmp_path / "t.csv"), tmp_path / "t.prunus"
    record = shell.json("tune", data, "--target", "price", "--out", out, *EPOCH, "--trials", 4, "--jobs", 2)
    assert record["trials"] == 4
    trials = optuna.load_study(study_name=None, storage=f"sqlite:///{out}.study.db").trials
    drawn = [str(trial.params) for trial in trials if trial.state.name == "COMPLETE"]  # others came too late to draw
    assert len(set(drawn)) == len(drawn) == 4


def test_a_study_is_of_one_problem(shell: Shell, tmp_path: Path) -> None:
    command = ("tune", csv(tmp_path / "t.csv"), "--study", tmp_path / "s.db", "--out", tmp_path / "t.prunus", *EPOCH)
    shell(*command, "--target", "kind", "--trials", 1)
    said = shell.mistake(*command, "--target", "price", "--force", "--quiet")
    assert "is a study of another problem (target: 'kind' there, 'price' here)" in said


def test_mistakes_of_a_search(shell: Shell, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv")
    command = ("tune", data, "--target", "kind", "--out", tmp_path / "t.prunus", "--quiet")
    assert "--trials must be at least 1" in shell.mistake(*command, "--trials", 0)
    few = csv(tmp_path / "few.csv", frame(5))
    assert "too few rows for this --validation-fraction" in shell.mistake("tune", few, *command[2:])
    assert "is not an SQLite database" in shell.mistake(*command, "--study", data)


def test_the_space_of_the_paper_is_within_ours() -> None:
    drawn = {}
    for space in SPACES:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        drawn[space] = {name for _ in range(20) for name in suggest(study.ask(), space)}
    assert drawn["paper"] == {"depth", "pruning_strength", "split", "leaf", "hidden_layer_sizes", "dropout"}
    assert drawn["all"] == drawn["paper"] | {"pieces", "learning_rate"}


def test_everything_that_is_drawn_is_an_option_of_the_estimators() -> None:
    drawn: set[str] = set()
    for space in SPACES:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        drawn |= {name for _ in range(20) for name in suggest(study.ask(), space)}
    assert drawn <= set(prunus.ArgminTreeRegressor().get_params())


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


def test_options_that_are_given_are_not_searched(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "t.prunus"
    command = ("tune", csv(tmp_path / "t.csv"), "--target", "price", "--out", out, *EPOCH, "--trials", 2, "--force")
    fixed = ("--leaf", "mlp", "--depth", 3, "--pieces", 4, "--hidden-layer-sizes", "8,8", "--pruning-strength", 0.5)
    record = shell.json(*command, *fixed)
    tree = prunus.load(out)
    assert (tree.leaf, tree.depth, tree.pieces, tree.hidden_layer_sizes) == ("mlp", 3, 4, (8, 8))
    assert record["best_options"].items() >= {"leaf": "mlp", "depth": 3, "pieces": 4, "pruning_strength": 0.5}.items()
    trials = optuna.load_study(study_name=None, storage=f"sqlite:///{out}.study.db").trials
    assert all(set(trial.params) == {"split", "learning_rate", "dropout"} for trial in trials)
    assert "study of another problem (options:" in shell.mistake(*command, "--leaf", "linear", "--quiet")


def test_a_fixed_leaf_is_kept_in_the_space_of_the_paper() -> None:
    trial = optuna.create_study().ask()
    assert suggest(trial, "paper", {"leaf": "constant"})["leaf"] == "constant"
    assert set(trial.params) == {"depth", "pruning_strength", "split"}


def test_a_search_with_an_option_that_cannot_be_used_leaves_no_study(shell: Shell, tmp_path: Path) -> None:
    command = ("tune", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus", *EPOCH, "--quiet")
    assert "--depth must be" in shell.mistake(*command, "--depth", 99)
    assert not (tmp_path / "t.prunus.study.db").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_option_that_cannot_be_used_is_one_line(tmp_path: Path, jobs: int) -> None:
    command = [
        "tune",
        csv(tmp_path / "t.csv"),
        "--target",
        "price",
        "--out",
        str(tmp_path / "t.prunus"),
        "--depth",
        "99",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "prunus", *command, "--jobs", str(jobs), "--quiet"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1  # broke: a line for each process, and one that points at them
    assert done.stderr.startswith("prunus tune: --depth must be")
    assert not (tmp_path / "t.prunus.study.db").exists()


@pytest.mark.parametrize("failed", [1, 2])
def test_processes_that_fail_are_told_of_once(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: int
) -> None:
    def run(search: tune.Search) -> list[tune.Failure]:
        if failed == 1:
            tune._work(search)
        return [tune.Failure("an error in prunus: oops", 3)] * failed

    monkeypatch.setattr(tune, "_run_workers", run)
    command = ["tune", csv(tmp_path / "t.csv"), "--target", "price", "--out", str(tmp_path / "t.prunus"), *EPOCH]
    code = main([*command, "--trials", "1", "--jobs", "2", "--quiet"])
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


def test_a_search_in_which_no_tree_has_splits_says_so(shell: Shell, tmp_path: Path) -> None:
    command = ("tune", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus", *EPOCH)
    said = shell(*command, "--trials", 1, "--pruning-strength", 1e6, "--leaf", "constant")
    assert "depth 0, 1 leaf (constant)" in said
    assert "note      No split was worth keeping: all rows end in one leaf." in said
    assert "No trial whose tree has splits predicts the held-out rows as well." in said


def test_a_search_prefers_splits(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIRST, "all", FIRST["all"] | {"pruning_strength": 1e3})
    monkeypatch.setattr(tune, "main_score", lambda *_: ("r2", 0.5))
    command = ("tune", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus", *EPOCH)
    record = shell.json(*command, "--trials", 4, "--leaf", "constant")
    assert record["best_trial"] > 1  # broke: the first of equal scores, whose tree has one leaf
    assert record["model"]["leaves"] > 1
