"""Effects of levels on the target, for categories with many levels."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prunus.data import OutputColumn, TableEncoder
from prunus.data.columns import Labels
from prunus.data.effects import FOLDS, EffectTargets, LevelSums, TargetUnits, folds_of
from prunus.errors import InputValueError

Doubles = npt.NDArray[np.float64]


def towns(n: int = 2000, levels: int = 100, seed: int = 0) -> tuple[pd.DataFrame, Doubles]:
    """Rows of a category with an effect of each level on the target, some of them missing."""
    random = np.random.default_rng(seed)
    code = random.integers(levels, size=n)
    town = np.array([f"town {c}" for c in code], dtype=object)
    y = random.normal(size=levels)[code] + random.normal(size=n)
    missing = random.random(n) < 0.05
    town[missing], y[missing] = None, y[missing] + 3
    return pd.DataFrame({"town": town, "size": random.normal(size=n)}), y


def fitted(frame: pd.DataFrame, y: Doubles, weight: Any = None) -> tuple[TableEncoder, npt.NDArray[np.float32]]:
    encoder = TableEncoder().fit(frame, sample_weight=weight)
    return encoder, encoder.fit_effects(frame, EffectTargets(y[:, None]), weight)


def effect_of(encoder: TableEncoder) -> tuple[int, OutputColumn]:
    ((position, column),) = ((i, c) for i, c in enumerate(encoder.columns_) if c.kind == "effect")
    return position, column


def prior_rows(frame: pd.DataFrame, y: Doubles) -> float:
    """The textbook estimate of the variance within levels, divided by that between levels."""
    groups = [group.to_numpy() for _, group in pd.Series(y).groupby(frame["town"].fillna("missing").to_numpy())]
    n, k = len(y), len(groups)
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (n - k)
    between = sum(len(group) * (group.mean() - y.mean()) ** 2 for group in groups) / (k - 1)
    return float(within / ((between - within) / ((n - sum(len(group) ** 2 for group in groups) / n) / (k - 1))))


def test_rows_get_the_mean_of_their_level_drawn_to_the_overall_mean_without_their_own_fold() -> None:
    frame, y = towns()
    encoder, x = fitted(frame, y)
    position, column = effect_of(encoder)
    prior, folds = prior_rows(frame, y), folds_of(len(y))
    assert column.label == "mean of the target for town"
    assert column.center == pytest.approx(y.mean())

    def drawn(level: Any, rows: Any = True) -> float:
        own = y[(frame["town"].isna() if level is None else frame["town"] == level).to_numpy() & rows]
        return float((own.sum() + prior * y.mean()) / (len(own) + prior))

    for level in (*frame["town"].dropna().unique()[:5], None):
        known = column.missing if level is None else (column.effects or {})[level]
        assert known == pytest.approx(drawn(level), abs=1e-5)
        new = pd.DataFrame({"town": pd.Series([level], dtype=object), "size": [0.0]})
        expected = (drawn(level) - y.mean()) / column.scale
        assert encoder.transform(new)[0, position] == pytest.approx(expected, abs=1e-5)
    for i in range(0, 200, 7):
        level = None if pd.isna(frame["town"][i]) else frame["town"][i]
        expected = (drawn(level, folds != folds[i]) - y.mean()) / column.scale
        assert x[i, position] == pytest.approx(expected, abs=1e-5)


def test_everything_but_the_effects_is_as_without_them() -> None:
    frame, y = towns()
    plain, (encoder, x) = TableEncoder().fit(frame), fitted(frame, y)
    others = np.array([column.kind != "effect" for column in encoder.columns_])
    assert [column for column in encoder.columns_ if column.kind != "effect"] == plain.columns_
    assert_array_equal(x[:, others], plain.transform(frame))
    assert np.sqrt(np.mean(x[:, ~others] ** 2)) == pytest.approx(1.0, abs=1e-4)
    targets = EffectTargets(y[:, None])
    assert_array_equal(encoder.transform_training(frame, targets), x)
    assert (encoder.transform(frame) != x).any()
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.get_state())))
    assert again.columns_ == encoder.columns_
    assert_array_equal(again.transform(frame), encoder.transform(frame))
    assert_array_equal(encoder.fit_effects(frame, targets), x)  # learned anew, not twice


def test_categories_that_need_or_show_no_effects_have_none() -> None:
    frame, y = towns(levels=20)  # each level has a column
    plain, (encoder, x) = TableEncoder().fit(frame), fitted(frame, y)
    assert encoder.get_state() == plain.get_state()
    assert_array_equal(x, plain.transform(frame))
    random = np.random.default_rng(3)
    for names in (random.integers(100, size=2000), random.integers(1500, size=2000), random.permutation(2000)):
        encoder, _ = fitted(pd.DataFrame({"town": names.astype(str)}), random.normal(size=2000))
        assert {column.kind for column in encoder.columns_} == {"category", "infrequent"}
    frame, _ = towns()
    assert "effect" not in {column.kind for column in fitted(frame, np.full(len(frame), 7.0))[0].columns_}
    assert_array_equal(TargetUnits.of(np.full((5, 1), 7.0), None).standard(np.array([[7.0]])), 0.0)


def test_unseen_levels_and_unseen_missing_values_have_the_overall_mean() -> None:
    frame, y = towns()
    seen = frame["town"].notna().to_numpy()
    encoder, _ = fitted(frame[seen], y[seen])
    new = pd.DataFrame({"town": ["elsewhere", None], "size": [0.0, 0.0]})
    assert_array_equal(encoder.transform(new)[:, effect_of(encoder)[0]], 0.0)


def test_rows_with_weights_resemble_repeated_rows() -> None:
    frame, y = towns(n=600)
    weight = np.random.default_rng(1).integers(0, 3, size=600)
    several = np.repeat(np.arange(600), weight)
    weighted, x = fitted(frame, y, weight)
    # Weights are 1 on average, so that means are drawn to the overall mean as if there were fewer rows.
    repeated, _ = fitted(frame.iloc[several], y[several])
    (position, mine), (_, its) = effect_of(weighted), effect_of(repeated)
    assert mine.center == pytest.approx(its.center)
    own, others = mine.effects or {}, its.effects or {}
    assert set(own) == set(others)
    assert np.corrcoef(list(own.values()), [others[level] for level in own])[0, 1] > 0.98
    assert np.isfinite(x[:, position]).all()


def test_rows_of_weight_0_change_nothing_and_only_ratios_of_weights_matter() -> None:
    frame, y = towns(n=800)
    weight = (np.arange(800) % 3 > 0).astype(float)
    kept = weight > 0
    encoder, x = fitted(frame, np.where(kept, y, 1e6), weight)
    without, x_without = fitted(frame[kept].reset_index(drop=True), y[kept])
    assert encoder.columns_ == without.columns_
    assert_array_equal(x[kept], x_without)
    weight = np.random.default_rng(2).uniform(0.5, 2, size=800)
    (_, first), (_, second) = (effect_of(fitted(frame, y, weight * factor)[0]) for factor in (1.0, 1000.0))
    assert first.effects == pytest.approx(second.effects)


@pytest.mark.parametrize(("shift", "scale"), [(1e9, 1.0), (0.0, 1e-200), (0.0, 1e200), (-5.0, 1e-3)])
def test_any_units_of_the_target(shift: float, scale: float) -> None:
    frame, y = towns()
    plain, x = fitted(frame, y)
    position, usual = effect_of(plain)
    encoder, found = fitted(frame, shift + scale * y)
    assert effect_of(encoder)[1].center == pytest.approx(shift + scale * usual.center)
    assert_allclose(found[:, position], x[:, position], atol=1e-4)
    assert_allclose(encoder.transform(frame)[:, position], plain.transform(frame)[:, position], atol=1e-4)


def test_sums_of_parts_add_up_to_those_of_the_table() -> None:
    random = np.random.default_rng(0)
    codes, y, weight = random.integers(-1, 6, size=90), random.normal(size=(90, 2)), random.uniform(1, 2, size=90)
    levels = [f"level {i}" for i in range(6)]
    whole = LevelSums.of(Labels(codes, levels), y, weight, folds_of(90))
    parts = []
    for part in (slice(0, 40), slice(40, 90)):
        used = sorted(set(codes[part].tolist()) - {-1}, reverse=True)  # another order of levels
        own = np.array([used.index(c) if c >= 0 else -1 for c in codes[part]])
        labels = Labels(own, [levels[c] for c in used])
        parts.append(LevelSums.of(labels, y[part], weight[part], folds_of(len(own), part.start)))
    both = parts[0] + parts[1]
    order = [both.levels.index(level) for level in levels] + [-1]
    assert_allclose(both.count[order], whole.count)
    assert_allclose(both.total[order], whole.total)
    assert_allclose(both.squares, whole.squares)
    assert_allclose(both.prior_weight(), whole.prior_weight())


def test_folds_are_about_equally_large_and_have_no_period() -> None:
    folds = folds_of(100_000)
    assert_allclose(np.bincount(folds, minlength=FOLDS) / len(folds), 1 / FOLDS, atol=0.005)
    for period in range(1, 40):
        assert np.mean(folds[period:] == folds[:-period]) == pytest.approx(1 / FOLDS, abs=0.01)


def test_targets_that_cannot_be_used() -> None:
    frame, y = towns()
    with pytest.raises(InputValueError, match="values must be of shape"):
        EffectTargets(np.zeros(3), ["mean"])
    with pytest.raises(InputValueError, match="different words"):
        EffectTargets(np.zeros((3, 2)), ["mean", "mean"])
    with pytest.raises(InputValueError, match="values must be finite"):
        EffectTargets(np.array([[np.nan]]), ["mean"])
    with pytest.raises(InputValueError, match="values must have 2000 rows"):
        TableEncoder().fit(frame).fit_effects(frame, EffectTargets(y[:10, None]))
