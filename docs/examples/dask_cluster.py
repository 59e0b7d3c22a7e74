"""The calibration of a model, from files that the workers of a Dask cluster read.

python dask_cluster.py predictions/ [--scheduler tcp://scheduler:8786]

Workers need calibrant in their Python environment.
"""

import argparse

import dask.dataframe as dd
from distributed import Client

import calibrant


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--scheduler", help="address; two workers of this machine by default")
    given = parser.parse_args()
    here = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(given.scheduler) if given.scheduler else Client(**here):
        sketch = calibrant.Sketch.from_frame(dd.read_parquet(given.table), label="label", scores="p")
    print(sketch.estimate(rng=0))


if __name__ == "__main__":
    main()
