"""What a score really means: curves, diagrams and histograms."""
