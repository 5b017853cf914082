"""The one way in which this package says no to what a person asked for: a cause, and the way out of it.

Owns the exception only. Who shows it, and how, is up to the command that catches it.
"""


class Refusal(Exception):
    """Something that a person can put right: shown as two lines, never as a traceback.

    `cause` says what happened, naming the file, flag or value; `way_out` says what to do next.
    """

    def __init__(self, cause: str, way_out: str):
        super().__init__(f"{cause}\n{way_out}")
        self.cause = cause
        self.way_out = way_out
