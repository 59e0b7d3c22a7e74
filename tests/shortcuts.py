"""Changes inside the package that make tests of the public surface fast; no test of it makes another one."""


def compare_estimators(patch, *names):
    """Assess with these estimators of the literature, since all of them take most of the time."""
    patch.setattr("calibrant.assessment.assess.REFERENCE_ESTIMATORS", names)


def few_null_data_sets(patch, of_scores=4, of_rows=1):
    """Simulate few calibrated data sets for a decision regret."""
    patch.setattr("calibrant.decisions.regret.NULL_DATA_SETS", of_scores)
    patch.setattr("calibrant.decisions.regret.CANONICAL_NULL_DATA_SETS", of_rows)


def read_as_sums(patch):
    """Read every file as sums, as a large one is."""
    patch.setattr("calibrant.data.is_large", lambda *_, **__: (True, "many rows"))
