"""The calibration of a model, from whatever DuckDB reads.

    python duckdb_table.py "select label, p from 'predictions/*.parquet'"
    python duckdb_table.py "select label, p from read_parquet('s3://bucket/predictions/*.parquet')" --setup \
        "install httpfs; load httpfs; create secret (type s3, provider credential_chain)"
    python duckdb_table.py "select label, p from shop.public.predictions" --setup \
        "install postgres; load postgres; attach 'dbname=shop host=db' as shop (type postgres, read_only)"
"""

import argparse

import duckdb

import calibrant

parser = argparse.ArgumentParser()
parser.add_argument("query")
parser.add_argument("--setup", default="", help="statements that come first")
given = parser.parse_args()

connection = duckdb.connect()
connection.execute(given.setup)
sketch = calibrant.Sketch.from_frame(connection.sql(given.query), label="label", scores="p")
print(sketch.estimate(rng=0))
