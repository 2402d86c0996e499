"""What goes wrong, by kind."""

from __future__ import annotations


class Error(Exception):
    """Every failure of the library. The message is one line that says what was expected and what was found.

    `code` is one of "invalid_argument", "not_found", "corrupt", "unsupported", "io" and "internal", the same names
    that the command line and the server use.
    """

    code: str

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[Error], tuple[str, str]]:
        return type(self), (str(self), self.code)


class UsageError(Error, ValueError):
    """A call that makes no sense: wrong shapes, unknown names, contradictory options."""

    def __init__(self, message: str, code: str = "invalid_argument") -> None:
        super().__init__(message, code)
