"""Probability vectors uniform on the simplex; true ones are pulled towards equal chances."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant.score_data import Array
from calibrant.tasks.notions import get_notion


@dataclass(frozen=True)
class Dirichlet:
    n_classes: int
    factor: float

    @property
    def name(self) -> str:
        return f"dirichlet-{self.n_classes}"

    def shrunk(self, factor: float) -> "Dirichlet":
        return replace(self, factor=self.factor * factor)

    def truth(self, notion: str) -> float:
        k = self.n_classes
        if get_notion(notion).top:
            return self.factor * (float(np.sum(1 / np.arange(1, k + 1))) - 1) / k
        return 2 * self.factor * (1 - 1 / k) ** k / k

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        scores = rng.dirichlet(np.ones(self.n_classes), n)
        chance = (1 - self.factor) * scores + self.factor / self.n_classes
        edge = np.cumsum(chance, axis=1)[:, :-1]
        return scores, (rng.random((n, 1)) >= edge).sum(axis=1)

    def deviation(self, notion: str, *, rows: int = 1_000_000, seed: int = 0) -> float:
        scores, labels = self.draw(np.random.default_rng(seed), rows)
        # Scores above 1 / K are too high, those below too low.
        added = np.sign(scores - 1 / self.n_classes)
        added *= scores - (labels[:, None] == np.arange(self.n_classes))
        if get_notion(notion).top:
            return float(added[np.arange(rows), scores.argmax(axis=1)].std())
        return float(added.mean(axis=1).std())
