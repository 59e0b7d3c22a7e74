"""Four language models answer the same questions: which is the best calibrated?

    python four_models.py answers

writes the simulated answers, one file for each model, and compares them. The command line does the same, also
as a page, and makes a table for a paper:

    calibrant compare answers/*.csv --correct right --confidence confidence --cluster question --baseline base
    calibrant compare answers/*.csv --correct right --confidence confidence --cluster question -o models.html
    calibrant estimate answers --correct right --confidence confidence --cluster question --by model --latex

Every model has answers of its own, up to five for each question, and some questions have none. Answers to one
question are not independent, neither those of one model nor those of two, so the question is the cluster.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.special import ndtr

import calibrant

QUESTIONS = 400
# Skill of each model, and the power of its confidence: 1 is calibrated, below 1 is overconfident.
MODELS = {"base": (0.0, 1.0), "chat": (0.6, 0.45), "small": (-0.8, 0.7), "tuned": (0.6, 0.95)}


def simulate(seed=0):
    """Return question, confidence and correctness of each answer of each model."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1, QUESTIONS)
    common = rng.normal(0, 0.7, QUESTIONS)  # what all models get right or wrong, whatever their confidence
    answers = {}
    for name, (skill, power) in MODELS.items():
        question = np.repeat(np.arange(QUESTIONS), rng.integers(0, 6, QUESTIONS))
        signal = skill - difficulty[question] + rng.normal(0, 0.5, len(question))
        noise = common[question] + rng.normal(0, np.sqrt(1 - 0.7**2), len(question))
        # The noise is standard normal, so that an answer is right with probability 1 / (1 + exp(-2 signal)).
        chance = 1 / (1 + np.exp(-2 * signal))
        right = ndtr(noise) < chance
        answers[name] = {"question": question, "confidence": chance**power, "right": right.astype(int)}
    return answers


def write(folder, answers):
    """Write a CSV file for each model."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in answers.items():
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["model", *columns])
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            writer.writerows([name, *row] for row in rows)


def compare(answers):
    """Compare the models with the first one, paired by question."""
    right, confidence, question = (
        {name: columns[key] for name, columns in answers.items()}
        for key in ("right", "confidence", "question")
    )
    return calibrant.compare(right, confidence, notion="correctness", cluster=question, baseline="base")


def table(answers):
    """Return the error of each model and their mean; models that answer the same questions are dependent."""
    right, confidence, question = (
        np.concatenate([columns[key] for columns in answers.values()])
        for key in ("right", "confidence", "question")
    )
    model = np.repeat([*answers], [len(columns["right"]) for columns in answers.values()])
    by = {"model": model}
    return calibrant.estimate_by(right, confidence, by, notion="correctness", cluster=question)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    answers = simulate()
    write(given.folder, answers)
    print(compare(answers))
    print(table(answers))


if __name__ == "__main__":
    main()
