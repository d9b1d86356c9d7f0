"""The size of a picture is read from its header."""

import struct

import pytest

from inspector.storage.images import size_of

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 200)
GIF = b"GIF89a" + struct.pack("<HH", 300, 200)
FRAME = struct.pack(">BBHBHH", 0xFF, 0xC2, 17, 8, 200, 300)
TABLE = struct.pack(">BBH", 0xFF, 0xDB, 67) + bytes(65)
EXIF = struct.pack(">BBH", 0xFF, 0xE1, 8) + b"Exif\0\0"
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 300, 200)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 299 | 199 << 14)
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (299).to_bytes(3, "little") + (199).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("mime", "content"),
    [
        ("image/png", PNG),
        ("image/gif", GIF),
        ("image/jpeg", b"\xff\xd8" + TABLE + FRAME),
        ("image/webp", LOSSY),
        ("image/webp", LOSSLESS),
        ("image/webp", EXTENDED),
    ],
)
def test_the_size_is_that_of_the_header(mime, content):
    assert size_of(mime, content) == (300, 200)
    assert all(size_of(mime, content[:end]) is None for end in range(len(content) - 2))


@pytest.mark.parametrize(
    ("mime", "content"),
    [
        ("image/jpeg", b"\xff\xd8" + EXIF + FRAME),  # which may be turned
        ("image/jpeg", b"\xff\xd8" + bytes(40)),
        ("image/webp", b"RIFF\0\0\0\0WEBPICCP" + bytes(40)),
        ("image/png", PNG[:16] + bytes(8)),
        ("image/avif", PNG),
    ],
)
def test_a_size_that_is_not_known_is_none(mime, content):
    assert size_of(mime, content) is None
