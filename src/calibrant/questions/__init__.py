"""What is asked of predictions: a notion, about some classes, of evidence."""
