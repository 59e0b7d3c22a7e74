"""Scores of CSV files that are parsed as numbers at once mean what they mean as text, refusals included."""

import random

import pytest

from calibrant import Sketch
from calibrant.data import text
from calibrant.data.columns import Roles

SCORES = (
    *("0.5", " 0.25 ", "+0.5", ".5", "5e-1", "nan", "inf", "", "abc", "0,5", "1.5", "-0.1", '"0.5"', "0.5 x"),
    *("1_0", "0x1", "1e-400", '""', "  ", "0.1234567890123456789", '"0.5', "1", "0", "1.", "TRUE", "-0.0"),
)
LABELS = ("0", "1", "01", "1.0", " 1", "true", "x", "", '"1"', "é")


def answer(path, rows):
    try:
        return Sketch.from_files(path, label="y", scores="p", batch_rows=rows).digest
    except ValueError as error:
        return str(error)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 256)


@pytest.mark.parametrize("seed", range(40))
def test_numbers_are_those_of_the_text(tmp_path, monkeypatch, small_blocks, seed):
    rng, path = random.Random(seed), tmp_path / "rows.csv"
    lines = [f"{rng.choice('01')},{rng.random():.4f}" for _ in range(rng.randint(1, 80))]
    for at in rng.sample(range(len(lines)), min(len(lines), rng.randint(0, 2))):
        y, p = lines[at].split(",")
        odd = (f"{y},{rng.choice(SCORES)}", f"{rng.choice(LABELS)},{p}", f"{y},{p},1", "")
        lines[at] = rng.choices(odd, (6, 3, 1, 1))[0]
    path.write_text("y,p\n" + "\n".join(lines) + rng.choice(["", "\n"]))
    rows = rng.choice([None, 1, 7, 20])
    found = answer(path, rows)
    monkeypatch.setattr(Roles, "floats", ())
    assert found == answer(path, rows)


def test_a_number_is_not_parsed_twice(tmp_path, monkeypatch, small_blocks):
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n" + "1,0.5\n0,0.25\n" * 200)
    types = set()
    own = text._parsed_rows

    def watched(*args, **options):
        table = own(*args, **options)
        types.add(str(table.schema.field("p").type))
        return table

    monkeypatch.setattr(text, "_parsed_rows", watched)
    assert Sketch.from_files(path).n == 400
    assert types == {"double"}
    # From what is no number on there is text, and a batch that has both is text as a whole.
    path.write_text("y,p\n" + "1,0.5\n0,0.25\n" * 100 + "1,\u00a00.5\n" + "1,0.5\n0,0.25\n" * 100)
    assert Sketch.from_files(path, batch_rows=150).n == 401
    assert types == {"double", "string"}
