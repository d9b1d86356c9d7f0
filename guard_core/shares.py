"""How shares are written in per cent, wherever they are said: never rounded to all of it, nor to nothing."""

from __future__ import annotations

MORE_DIGITS = (1, 2, 4)  # tried where fewer would make another share 100


def per_cent(share: float, digits: int = 0) -> str:
    """A share of 1 in per cent, without the sign: "77.5", "under 0.1" (digits: 1), "99.9", "100.0008".

    So many digits follow the decimal point, and more where the share is above 1 and would be rounded to 100: a request
    that is over the window by a token must not read as one that fills it. What is below 1 has one digit then, or as
    many as asked for, and is rounded down.
    """
    least = 10.0**-digits
    if 0 < 100 * share < least / 2:
        return f"under {least:.{digits}f}"
    for places in (digits, *(more for more in MORE_DIGITS if more > digits)):
        if share == 1 or round(100 * share, places) != 100:
            return f"{100 * share:,.{places}f}"
        if share < 1 and places:
            return f"{100 - 10.0**-places:.{places}f}"
    return "over 100"
