"""`calibrant.Monitor`: batches of every kind, alarms, what is refused, and what is saved."""

import copy
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

import calibrant
from calibrant import InputError, Monitor, Sketch


def binary(n=300, change=0.0, seed=0):
    r = np.random.default_rng(seed)
    score = r.random(n)
    return (r.random(n) < np.clip(score + change, 0, 1)).astype(int), score


def matrix(n=300, seed=0, power=1.0):
    r = np.random.default_rng(seed)
    true = r.dirichlet(np.ones(3), n)
    y = (true.cumsum(axis=1) < r.random((n, 1))).sum(axis=1)
    scores = true**power
    return y, scores / scores.sum(axis=1, keepdims=True)


def watch(monitor, batches, **options):
    for rows in batches:
        monitor.update(*rows, **options)
    return monitor


@pytest.mark.full
@pytest.mark.parametrize(
    ("notion", "rows"),
    [
        ("binary", lambda k, power: (binary(seed=k)[0], binary(seed=k)[1] ** power)),
        ("correctness", lambda k, power: (binary(seed=k)[0], binary(seed=k)[1] ** power)),
        ("confidence", lambda k, power: matrix(seed=k, power=power)),
        ("classwise", lambda k, power: matrix(seed=k, power=power)),
        ("top:2", lambda k, power: matrix(seed=k, power=power)),
    ],
)
def test_every_notion_is_watched(notion, rows):
    calm = watch(Monitor(notion), (rows(k, 1.0) for k in range(4)))
    assert calm.alarm is None
    assert calm.e_value < 5
    assert calm.notion == notion
    wrong = watch(Monitor(notion), (rows(k, 3.0) for k in range(4)))
    assert wrong.alarm is not None
    assert wrong.history[0].value > 0.02


def test_a_class_that_changes_is_named():
    monitor = Monitor("classwise")
    for k in range(5):
        y, scores = matrix(500, seed=k)
        r = np.random.default_rng(k)
        swap = (y == 2) & (r.random(500) < 0.4)
        monitor.update(np.where(swap, 1, y), scores)
    assert re.search("scores of [12] .*too (low|high)", monitor.alarm.direction)


@pytest.mark.full
def test_a_batch_may_have_columns_in_another_order_and_no_row_of_a_class():
    import pandas as pd

    y, scores = matrix(40)
    frame = pd.DataFrame(scores, columns=["p_a", "p_b", "p_c"])
    names = np.array(["a", "b", "c"])[y]
    one, other = Monitor("classwise").update(names, frame), Monitor("classwise").update(names, frame)
    one.update(names, frame)
    other.update(names, frame[["p_c", "p_a", "p_b"]])
    assert one.e_value == pytest.approx(other.e_value)
    only = names != "c"
    one.update(names[only], frame[only].reset_index(drop=True))
    assert len(one.history) == 3


@pytest.mark.full
def test_a_reference_period_is_what_a_change_is_from():
    def batch(k, shift):
        r = np.random.default_rng(k)
        score = r.random(1000)
        return (r.random(1000) < np.clip(0.7 * score + shift, 0, 1)).astype(int), score

    monitor = watch(Monitor(reference=5), (batch(k, 0.1) for k in range(15)))
    assert monitor.alarm is None
    assert [row.is_reference for row in monitor.history] == [True] * 5 + [False] * 10
    assert {row.e_value for row in monitor.history[:5]} == {1.0}
    assert monitor.limit == pytest.approx(25)
    watch(monitor, (batch(k, 0.3) for k in range(15, 25)))
    assert monitor.alarm is not None
    assert "too low" in monitor.alarm.direction
    # Frequencies that fall as scores rise contradict what the band assumes.
    falling = Monitor(reference=1).update(*[part if k else 1 - part for k, part in enumerate(binary(5000))])
    with pytest.raises(InputError, match="do not fall as scores rise"):
        falling.update(*binary())
    with pytest.raises(InputError, match="reference period"):
        Monitor(reference=1).update(*binary(), groups=["a"] * 300).update(*binary(), groups=["b"] * 300)


def test_a_tolerance_allows_what_it_says():
    shifted = []
    for k in range(10):
        r = np.random.default_rng(k)
        p = r.random(500)
        shifted.append((r.random(500) < 1 / (1 + np.exp(-(np.log(p / (1 - p)) + 0.3))), p))
    assert watch(Monitor(), shifted).alarm is not None
    assert watch(Monitor(tolerance=0.35), shifted).alarm is None


@pytest.mark.full
def test_effects_of_single_days_and_missing_labels_are_cautioned_about():
    monitor, calm = Monitor(), Monitor()
    for k in range(20):
        r = np.random.default_rng(k)
        p = r.random(600)
        effect = 0.5 * r.normal()
        monitor.update(r.random(600) < 1 / (1 + np.exp(-(np.log(p / (1 - p)) + effect))), p)
        calm.update(*binary(600, seed=k))
    (caution,) = monitor.cautions
    assert "varies from batch to batch" in caution
    assert float(re.search(r"deviation ([\d.]+)", caution)[1]) == pytest.approx(0.5, abs=0.2)
    assert calm.cautions == ()
    calm.update([1.0, np.nan, 0.0], [0.5, 0.6, 0.7], missing="drop")
    assert "1 row had no label" in calm.cautions[0]


@pytest.mark.full
def test_what_is_saved_goes_on_as_if_it_had_not_been(tmp_path):
    path = tmp_path / "monitor.json"
    whole = Monitor("classwise", tolerance=0.05, reference=2)
    Monitor("classwise", tolerance=0.05, reference=2).save(path)
    for k in range(4):
        y, scores = matrix(80, seed=k, power=2.0)
        group = np.array(["a", "b"])[np.arange(80) % 2]
        whole.update(y, scores, groups=group, at=f"2026-05-{k + 1:02}")
        monitor = Monitor.load(path)
        monitor.update(y, scores, groups=group, at=f"2026-05-{k + 1:02}")
        monitor.save(path)
    assert monitor.to_dict() == whole.to_dict()
    assert monitor.e_value == whole.e_value
    assert (monitor.alarm, monitor.flagged) == (whole.alarm, whole.flagged)
    assert str(monitor.history) == str(whole.history)


def test_a_damaged_state_is_refused(tmp_path):
    good = watch(Monitor(), [binary(50, seed=k) for k in range(3)]).to_dict()
    changes = {
        "settings.alpha": lambda v: v["settings"].update(alpha=2),
        "settings.tolerance": lambda v: v["settings"].update(tolerance=-1),
        "at must be after": lambda v: v["batches"].reverse(),
        r"table": lambda v: v["batches"][1]["sums"][0]["table"][0].__setitem__(0, 500),
        "table must hold": lambda v: v["batches"][1]["sums"][0]["table"][3].__setitem__(0, 1e6),
        "schema": lambda v: v.update(schema=99),
        "at": lambda v: v["batches"][0].update(at="soon"),
    }
    for message, change in changes.items():
        values = copy.deepcopy(good)
        change(values)
        with pytest.raises(InputError, match=message):
            Monitor.from_dict(values)
    path = tmp_path / "monitor.json"
    path.write_text("{")
    with pytest.raises(InputError, match="be JSON"):
        Monitor.load(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": "a"}, "alpha"),
        ({"tolerance": -0.1}, "tolerance must be a finite number of log-odds"),
        ({"tolerance": np.inf}, "tolerance"),
        ({"delay": -1}, "delay"),
        ({"reference": 0}, "reference"),
        ({"horizon": 1.5}, "horizon"),
        ({"groups": "ab"}, "groups"),
        ({"groups": ["a", "a"]}, "groups"),
        ({"groups": []}, "groups"),
        ({"notion": "canonical"}, "notion"),
        ({"notion": "binery"}, "notion"),
    ],
)
def test_garbage_is_refused_at_once(options, message):
    with pytest.raises(InputError, match=message):
        Monitor(**options)


def test_a_batch_that_is_refused_changes_nothing():
    monitor = Monitor("binary", groups=["a", "b"]).update(*binary(50), at="2026-05-04", groups=["a"] * 50)
    before, y, p = monitor.to_dict(), *binary(50)
    good = {"at": "2026-05-05", "groups": ["a"] * 50}
    for rows, change, message in [
        ((y, p), {"at": "2026-05-04"}, "a period counts once"),
        ((y, p), {"at": "2026-05-03"}, "be after 2026-05-04"),
        ((y, p), {"at": None}, "at must be given"),
        ((y, p), {"at": 7}, "number in all batches or in none"),
        ((y, p), {"at": "tomorrow"}, "at must be a whole number, a date"),
        ((y, p), {"at": 1.5}, "at must be"),
        ((y, p), {"groups": ["z"] * 50}, "groups must be one of"),
        ((y, p), {"groups": None}, "groups must be"),
        ((y, p), {"groups": ["a"] * 49}, "groups"),
        ((y, p), {"cluster": ["a"] * 49}, "cluster"),
        ((y, 2 * p), {}, "y_prob"),
        ((y, None), {}, "y_prob"),
        ((np.r_[np.nan, y[1:]], p), {}, "y_true"),
        ((matrix(50)), {}, "y_prob|columns|labels|y_true"),
        ((Sketch("confidence").update(*matrix(50)), None), {"groups": None}, "classes of the first batch"),
        ((Sketch(),), {"groups": None}, "hold rows"),
        (({"a": 3},), {"groups": None}, "a sketch for each group"),
        ((Sketch().update(y, p),), {}, "groups must be left out for a sketch"),
        ((Sketch().update(y, p),), {"groups": None, "cluster": y}, "cluster"),
    ]:
        with pytest.raises(InputError, match=message):
            monitor.update(*rows, **(good | change))
        assert monitor.to_dict() == before
    monitor.update(y, p, **good)
    assert len(monitor.history) == 2


def test_rows_wait_until_their_labels_are_complete():
    y, p = binary(50)
    monitor = Monitor(delay=timedelta(days=7))
    with pytest.raises(InputError, match=r"7 days ago.*update at 2026-05-12T00:00:00"):
        monitor.update(y, p, at="2026-05-04", now="2026-05-11T23:59:59")
    monitor.update(y, p, at="2026-05-04", now=datetime(2026, 5, 12, tzinfo=UTC))
    assert len(monitor.history) == 1
    with pytest.raises(InputError, match="date or a time"):
        Monitor(delay=1).update(y, p)
    with pytest.raises(InputError, match="days ago"):
        monitor.update(y, p, at=date.today())


def test_the_history_as_a_frame():
    monitor = watch(Monitor(), [binary(100, seed=k) for k in range(3)])
    frame = monitor.history.to_frame()
    assert list(frame["at"]) == [1, 2, 3]
    assert frame["e_value"][2] == monitor.e_value
    each = calibrant.estimate(*binary(100, seed=1))
    row = monitor.history[1]
    assert (row.value, row.low, row.high) == (each.value, each.low, each.high)
    assert len(monitor.history[1:]) == 2
    assert repr(Monitor()) == "Monitor(None, batches=0, e_value=1, alarm=None)"


def test_the_page_is_self_contained_and_escapes_names(tmp_path):
    monitor = Monitor()
    for k in range(8):
        y, p = binary(200, change=0.35 * (k > 3), seed=k)
        monitor.update(y, p, at=f"2026-05-0{k + 1}", groups=["<script>alert(1)</script>"] * 200)
    assert monitor.to_html(tmp_path / "page.html") is None
    page = (tmp_path / "page.html").read_text()
    assert page == monitor.to_html()
    assert "<script" not in page
    assert "&lt;script" in page
    assert not re.search(r"(src|href)=[\"']?http", page)
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert str(monitor.alarm.at) in page
    assert page.count("<svg") == 5  # a symbol, and two charts in two sizes
    assert "No clear evidence" in Monitor().update(*binary(50)).to_html()


def test_the_picture_has_the_error_and_the_evidence():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monitor = watch(Monitor(), [binary(300, change=0.3 * (k > 3), seed=k) for k in range(8)])
    top, bottom = monitor.plot()
    assert bottom.get_yscale() == "log"
    np.testing.assert_allclose(top.lines[0].get_ydata(), [row.value for row in monitor.history])
    assert monitor.limit in bottom.lines[1].get_ydata()
    with pytest.raises(ValueError, match="2 panels"):
        monitor.plot([top])
    matplotlib.pyplot.close("all")
