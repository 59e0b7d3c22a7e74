"""The calibration error of Humanity's Last Exam, row by row."""

import math


def rms(correct, confidence, bin_size, *, last=False):
    """Root of the mean squared gap of bins of sorted rows; without the `last` bin, as their code has it."""
    rows = sorted(zip(confidence, correct, strict=True), key=lambda row: row[0])
    bins = [[]]
    for k, row in enumerate(rows):
        if k and k % bin_size == 0 and len(rows) - k >= bin_size:
            bins.append([])
        bins[-1].append(row)
    squares = []
    for each in bins if last else bins[:-1]:
        gap = math.fsum(score for score, _ in each) / len(each) - sum(right for _, right in each) / len(each)
        squares.append(len(each) * gap * gap)
    return math.sqrt(math.fsum(squares) / len(rows))
