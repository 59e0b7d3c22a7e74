"""Calibration intercept, slope and observed over expected by loops over rows, in plain Python."""

from math import exp, fsum, log, sqrt


def logit(score, least):
    inside = min(max(score, least), 1 - least)
    return log(inside) - log(1 - inside)


def likeliest(x, outcome, weight, *, slope):
    """Return the coefficients of a logistic regression by iteratively reweighted least squares."""
    a, b = 0.0, 1.0
    for _ in range(200):
        s = [[], [], [], [], []]
        for z, y, w in zip(x, outcome, weight, strict=True):
            q = 1 / (1 + exp(-(a + b * z)))
            # The response that is regressed, beside what the line says already.
            h, r = w * q * (1 - q), w * (y - q)
            for sums, term in zip(s, (h, h * z, h * z * z, r, r * z), strict=True):
                sums.append(term)
        h0, h1, h2, r0, r1 = map(fsum, s)
        if slope:
            det = h0 * h2 - h1 * h1
            da, db = (h2 * r0 - h1 * r1) / det, (h0 * r1 - h1 * r0) / det
        else:
            da, db = r0 / h0, 0.0
        # A step moves no log-odds by more than 2, which keeps it from overshooting.
        size = max(abs(da + db * z) for z in x)
        a, b = (old + (step if size <= 2 else 2 * step / size) for old, step in ((a, da), (b, db)))
        if size < 1e-13:
            break
    return a, b


def variance(x, outcome, weight, square, a, b, *, slope, cluster=None):
    """Return the variance of the intercept, or of the slope: by the line or by rows, whichever is larger."""
    q = [1 / (1 + exp(-(a + b * z))) for z in x]
    h = [w * p * (1 - p) for w, p in zip(weight, q, strict=True)]
    h0, h1, h2 = (fsum(t * z**k for t, z in zip(h, x, strict=True)) for k in range(3))
    det = h0 * h2 - h1 * h1
    add = [(h0 * z - h1) / det if slope else 1 / h0 for z in x]
    line = fsum(v * p * (1 - p) * d * d for v, p, d in zip(square, q, add, strict=True))
    if cluster is None:
        rows = fsum(v * (y - p) ** 2 * d * d for v, y, p, d in zip(square, outcome, q, add, strict=True))
    else:
        rest = [w * (y - p) * d for w, y, p, d in zip(weight, outcome, q, add, strict=True)]
        rows = by_cluster(rest, cluster)
    return max(line, rows)


def ratio(score, outcome, weight, square, cluster=None):
    """Return observed over expected, and the standard error of its logarithm."""
    seen = fsum(w * y for w, y in zip(weight, outcome, strict=True))
    expected = fsum(w * s for w, s in zip(weight, score, strict=True))
    rest = [y - seen / expected * s for y, s in zip(outcome, score, strict=True)]
    rows = fsum(v * r * r for v, r in zip(square, rest, strict=True))
    n = fsum(weight) ** 2 / fsum(square)
    rows = max(rows, 0.25 * fsum(weight) ** 2 / n**2)
    if cluster is not None:
        rows = max(rows, by_cluster([w * r for w, r in zip(weight, rest, strict=True)], cluster))
    return seen / expected, sqrt(rows) / seen


def by_cluster(rest, cluster):
    """Return the sum of squares of what clusters add, with a degree of freedom taken off."""
    sums = {}
    for r, c in zip(rest, cluster, strict=True):
        sums[c] = sums.get(c, 0.0) + r
    return fsum(s * s for s in sums.values()) * len(sums) / (len(sums) - 1)
