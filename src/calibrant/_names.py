"""Names that the command line shows before anything heavy is imported."""

NOTIONS = ("class", "classwise", "confidence")
