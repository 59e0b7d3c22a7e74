"""One-dimensional problems of a classifier, by loops over rows and classes."""

from math import sqrt


def class_problem(labels, probs, column):
    """One class against the rest: its score, and whether the label is that class."""
    scores, outcomes = [], []
    for label, row in zip(labels, probs, strict=True):
        scores.append(float(row[column]))
        outcomes.append(1 if label == column else 0)
    return scores, outcomes


def classwise_problems(labels, probs):
    """One problem per column, whether or not its class occurs."""
    return [class_problem(labels, probs, column) for column in range(len(probs[0]))]


def confidence_problem(labels, probs):
    """The largest score, the first of equal ones, and whether its column is the label."""
    scores, outcomes = [], []
    for label, row in zip(labels, probs, strict=True):
        predicted = 0
        for column in range(1, len(row)):
            if row[column] > row[predicted]:
                predicted = column
        scores.append(float(row[predicted]))
        outcomes.append(1 if label == predicted else 0)
    return scores, outcomes


def combine(errors, norm="l1"):
    """Errors of several problems as one: mean, root mean square or maximum."""
    if norm == "max":
        return max(errors)
    if norm == "l2":
        return sqrt(sum(error * error for error in errors) / len(errors))
    return sum(errors) / len(errors)


def top(row, label, k):
    """The sum of the k largest scores of a row, and whether the label is among them; ties to the first."""
    order = sorted(range(len(row)), key=lambda column: (-row[column], column))[:k]
    return min(1.0, sum(sorted(float(row[column]) for column in order))), int(label) in order
