"""Prompts for comparisons: varied in language, length and script, always the same."""

SHORT = (
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    ",
    "Q: What is 17 + 25?\nA:",
    "La recette de la ratatouille commence par",
    "1, 2, 3, 5, 8,",
    "The three laws of robotics are:\n1.",
    "Übermorgen fährt der Zug nach Köln",
    "今日は天気が",
    "SELECT name FROM users WHERE",
    "Dear Sir or Madam,\n\nI am writing to",
    "Emoji test 🙂🙃: describe them.",
)
SUBJECTS = ("a lighthouse", "the moon", "an old clock", "two rivers", "a library", "the winter", "bread", "a violin")
FORMS = (
    "Write a sentence about",
    "Explain to a child",
    "List three facts about",
    "Tell a joke about",
    "Why do people like",
)
ENDINGS = (".", " in one line:", "?", ":\n\n")


def many(count: int) -> list[str]:
    """`count` different prompts, the short ones first."""
    made = [f"{form} {subject}{ending}" for ending in ENDINGS for subject in SUBJECTS for form in FORMS]
    return [*SHORT, *made][:count]


def long(tokens: int) -> str:
    """A prompt of at least so many tokens (a word is at least one)."""
    words = " ".join(f"item {number} is {SUBJECTS[number % len(SUBJECTS)]};" for number in range(tokens // 4 + 1))
    return f"Here is a list: {words} The next one is"
