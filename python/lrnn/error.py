"""What goes wrong, in the program's words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Error(RuntimeError):
    """One sentence that says what is wrong, and where there is one a hint at what to do."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(f"{sentence}\n  {hint}" if hint else sentence)
        self.sentence = sentence
        self.hint = hint


def translated(error: RuntimeError) -> RuntimeError:
    """Errors of our ops come through torch as RuntimeErrors, "[op] sentence": here they become `Error`. torch's own, of an
    argument of another kind, prints the argument, whole and twice: of those the first sentence is kept."""
    said = str(error)
    if kind := re.match(r"lrnn::(\w+)\(\) Expected a value of type '(.+?)' for argument '(\w+)' but instead found type '(.+?)'\.", said):
        return Error(f"[{kind[1]}] {kind[3]} must be a {kind[2]}, got {kind[4]}")
    return Error(said) if type(error) is RuntimeError and re.match(r"\[[a-z0-9_]+\] ", said) else error


def in_our_words(function: Function) -> Function:
    """A function whose errors are translated."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            said = translated(error)
            if said is error:
                raise
            raise said from None

    return call  # type: ignore[return-value]
