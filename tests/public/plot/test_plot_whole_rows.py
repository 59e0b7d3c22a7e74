"""The picture of canonical calibration: the heat map."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from test_plot import _no_figure_is_left, assert_texts_apart_and_inside  # noqa: F401
from tests.reports import binary, too_many_classes, whole_rows

from calibrant import InputError, plot


def test_it_draws_on_the_axes_it_is_given_or_on_one_new_figure():
    ax = plt.subplots()[1]
    assert plot.probability_transfer(whole_rows(), ax) is ax
    assert plt.get_fignums() == [ax.figure.number]
    new = plot.probability_transfer(whole_rows())
    assert plt.get_fignums() == [ax.figure.number, new.figure.number]
    assert_texts_apart_and_inside(new.figure)


def test_the_heat_map_reads_from_row_to_column():
    found = whole_rows()
    ax = plot.probability_transfer(found)
    np.testing.assert_array_equal(ax.images[0].get_array(), found.probability_transfer.net)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(found.classes)
    written = {text.get_position(): text for text in ax.texts}
    assert len(written) == 6
    assert written[1, 0].get_text() == f"{100 * found.probability_transfer.net[0, 1]:.1f}"
    assert written[0, 1].get_text() == f"−{100 * found.probability_transfer.net[0, 1]:.1f}"
    assert written[1, 0].get_weight() == "bold"
    assert written[2, 1].get_weight() != "bold"


def test_without_rejection_nothing_is_bold():
    found = whole_rows()
    unsure = found.estimates | {"canonical": replace(found.estimate, p_value=0.4)}
    ax = plot.probability_transfer(replace(found, estimates=unsure))
    assert {text.get_weight() for text in ax.texts} == {"normal"}


def test_narrow_cells_hold_no_numbers():
    ax = plt.subplots(figsize=(0.6, 0.6))[1]
    plot.probability_transfer(whole_rows(), ax)
    assert not ax.texts


def test_what_was_not_assessed_is_refused():
    with pytest.raises(
        InputError, match='be of notion="canonical" with 3 to 12 classes, got binary, 2 classes'
    ):
        plot.probability_transfer(binary())
    with pytest.raises(InputError, match="3 to 12 classes"):
        plot.probability_transfer(too_many_classes())
