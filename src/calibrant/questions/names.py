"""Names of notions, for those who show them before anything heavy is imported."""

NOTIONS = ("class", "classwise", "confidence", "top:k", "correctness", "multiclass")
