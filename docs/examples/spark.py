"""The calibration of each country, from a table that a Spark cluster holds.

spark-submit spark.py predictions/ [--master local[2]]

Executors need calibrant, pyarrow and pandas in their Python environment (PYSPARK_PYTHON).
"""

import argparse

from pyspark.sql import SparkSession

import calibrant

parser = argparse.ArgumentParser()
parser.add_argument("table")
parser.add_argument("--master", default="local[2]")
given = parser.parse_args()

spark = SparkSession.builder.master(given.master).appName("calibration").getOrCreate()
frame = spark.read.parquet(given.table)
sketches = calibrant.Sketch.from_frame_by_group(frame, label="label", scores="p", groups="country")
for country, sketch in sketches.items():
    print(country, sketch.estimate(rng=0))
spark.stop()
