"""Text of a session, a file's name or an error for a terminal, which obeys control characters. Imports nothing."""


def plain(text: str) -> str:
    """Text with escapes in place of characters that control the terminal, turn its reading direction or do not show."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def plain_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(map(plain, text.split("\n")))
