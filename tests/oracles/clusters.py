"""Clusters by loops over rows: design effects, and residuals with signs turned."""

from math import cos, pi, sqrt

from calibrant.score_data import FINE


def waves_of(score, weight, square, count):
    """Return the waves at each row, orthonormal by weight: Gram and Schmidt, one after the other."""
    cells = [int(c) for c in FINE.locate(score)]
    time, total, n = {}, 0.0, sum(weight) ** 2 / sum(square)
    for cell in sorted(set(cells)):
        clock = 0.0
        for s, c, q in zip(score, cells, square, strict=True):
            if c == cell:
                clock += q * (s * (1 - s) + 0.01 / sqrt(n))
        time[cell] = total + clock / 2
        total += clock
    waves = []
    for k in range(min(count, len(time))):
        wave = [cos(pi * k * time[c] / total) for c in cells]
        for earlier in waves:
            inner = sum(w * a * b for w, a, b in zip(weight, wave, earlier, strict=True))
            wave = [a - inner * b for a, b in zip(wave, earlier, strict=True)]
        size = sqrt(sum(w * a * a for w, a in zip(weight, wave, strict=True)))
        waves.append([a / size for a in wave])
    return waves


def effect(residual, weight, square, cluster, factor):
    """Return the variance of a sum of residuals over clusters, over that of independent rows."""
    together, alone = {}, 0.0
    for r, w, q, c, f in zip(residual, weight, square, cluster, factor, strict=True):
        together[c] = together.get(c, 0.0) + w * r * f
        alone += q * r * r * f * f
    return sum(t * t for t in together.values()) / alone


def design(score, outcome, cluster, weight=None, counts=True):
    """Return the design effects in the order of `DesignEffect`, and the correlation."""
    weight = [1.0] * len(score) if weight is None else [float(w) for w in weight]
    square = weight if counts else [w * w for w in weight]
    residual = [float(y) - s for y, s in zip(outcome, score, strict=True)]
    waves = waves_of(score, weight, square, 8)
    fitted = [0.0] * len(score)
    for wave in waves:
        sums = {}
        for r, w, c, f in zip(residual, weight, cluster, wave, strict=True):
            sums[c] = sums.get(c, 0.0) + w * r * f
        gap, noise = sum(sums.values()), sum(s * s for s in sums.values())
        kept = max(0.0, 1 - noise / gap**2)
        fitted = [a + kept * gap * f for a, f in zip(fitted, wave, strict=True)]
    rest = [r - a for r, a in zip(residual, fitted, strict=True)]
    sizes = {}
    for w, c in zip(weight, cluster, strict=True):
        sizes[c] = sizes.get(c, 0.0) + w
    whole = sum(weight)
    clusters, rows = whole**2 / sum(s * s for s in sizes.values()), whole**2 / sum(square)
    lost = (1 - 1 / rows) / (1 - 1 / clusters)

    def along(of, times):
        found = [max(1.0, times * effect(of, weight, square, cluster, wave)) for wave in waves]
        mean = sum(found) / len(found)
        return max(mean, *found[:2]), mean, found[0]

    most, usual, of_mean = along(rest, lost)
    sign = [-1.0 if a < 0 else 1.0 for a in fitted]
    strong = max(1.0, lost * effect(rest, weight, square, cluster, sign))
    size = sum(w * abs(a) for w, a in zip(weight, fitted, strict=True)) / whole
    doubt = most * sum(q * r * r for q, r in zip(square, rest, strict=True)) / whole**2
    sure = (size**2 / (size**2 + doubt)) ** 2
    excess = possible = 0.0
    for i, s in enumerate(score):
        for j, other in enumerate(score):
            if cluster[i] == cluster[j]:
                # A row that counts several times is as many rows.
                pairs = weight[i] * weight[j] - (square[i] if i == j else 0.0)
                excess += pairs * rest[i] * rest[j]
                possible += pairs * (min(s, other) - s * other)
    correlation = min(1.0, max(0.0, excess / possible))
    return (
        sure * strong + (1 - sure) * (most + usual) / 2,
        sure * strong + (1 - sure) * most,
        of_mean,
        sum(along(residual, 1.0)[:2]) / 2,
        correlation,
    )


def turned(score, outcome, cluster, weight, signs, ends, scale):
    """Return the residuals of each step with the signs of one set; a step ends at the score in `ends`."""
    sums = [0.0] * len(ends)
    for s, y, c, w in zip(score, outcome, cluster, weight, strict=True):
        step = next(k for k, end in enumerate(ends) if s <= end)
        sums[step] += scale * signs[c] * w * (float(y) - s)
    return sums
