"""What the data say about the gap between score and frequency."""
