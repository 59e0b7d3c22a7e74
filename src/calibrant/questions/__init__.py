"""What is asked of predictions: a notion, about some classes, of evidence."""

from calibrant.questions.notions import Notion, named, usual
from calibrant.questions.question import Question, Rows

__all__ = ["Notion", "Question", "Rows", "named", "usual"]
