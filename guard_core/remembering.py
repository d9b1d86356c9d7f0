"""What was computed of texts, kept until the texts of newer answers have more characters than a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def remembered(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function of texts that computes nothing twice while its last different texts together have up to `most`
    characters: `functools.lru_cache` counts answers, of which one may be as long as thousands. The last answer is kept
    however long its texts are."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        answers: OrderedDict[tuple[object, ...], R] = OrderedDict()
        held, lock = 0, Lock()

        @wraps(function)
        def wrapper(*texts: P.args, **names: P.kwargs) -> R:
            nonlocal held
            with lock:
                if texts in answers:
                    answers.move_to_end(texts)
                    return answers[texts]
            answer = function(*texts, **names)
            with lock:
                if texts not in answers:
                    answers[texts] = answer
                    held += _size(texts)
                while held > most and len(answers) > 1:
                    held -= _size(answers.popitem(last=False)[0])
            return answer

        return wrapper

    return decorate


def _size(texts: tuple[object, ...]) -> int:
    return sum(len(text) for text in texts if isinstance(text, str))
