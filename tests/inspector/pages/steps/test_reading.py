"""One part of a message as raw text, markdown, a tree, a picture or plain bytes."""

import base64
import html
import json
import re

import pytest

from inspector.models import Session
from tests.builders import image, model, session, tool_result, user

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def read(client, store):
    """The reader of the first part of a message."""

    def get(event, **query):
        base = store(session(event, model("answer"))).get_absolute_url()
        return client.get(base + "messages/1/parts/1", query)

    return get


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** `code`", "<p><strong>bold</strong> <code>code</code></p>"),
        ("# Plan\n\n- one\n- two", '<p class="md-heading">Plan</p>'),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "<td>1</td>"),
        ("```html\n<b>x</b>\n```", "<pre>&lt;b&gt;x&lt;/b&gt;\n</pre>"),
    ],
)
def test_markdown_is_rendered_when_it_is_asked_for(read, text, shown):
    assert shown in read(user(text), **{"as": "markdown"}).content.decode()


def test_raw_text_is_the_default(read):
    assert "<pre>**bold**</pre>" in read(user("**bold**")).content.decode()


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[go](javascript:alert(1))",
        "[go](https://example.org/track)",
        "![pixel](https://example.org/p.png)",
        "<https://example.org/auto>",
        "[ref][1]\n\n[1]: https://example.org/ref",
    ],
)
def test_markdown_neither_links_nor_loads_nor_runs_anything(read, text):
    page = read(user(text), **{"as": "markdown"}).content.decode()
    body = page[page.index('<div class="markdown">') : page.index("</main>")]
    assert not re.search(r"<(?:a|img|script|iframe)\b", body)


def test_the_pieces_of_long_markdown_are_all_of_it(client, store):
    text = "\n\n".join(f"paragraph {number} " + "word " * 50 for number in range(200))
    url = store(session(user(text), model("answer"))).get_absolute_url() + "messages/1/parts/1?as=markdown"
    numbers = []
    while url:
        page = client.get(url).content.decode()
        numbers += re.findall(r"<p>paragraph (\d+) ", page)
        link = re.search(r'class="more" href="([^"]+)"', page)
        url = link[1].replace("&amp;", "&") if link else ""
    assert numbers == [str(number) for number in range(200)]


@pytest.mark.parametrize(
    "text", ["*a* " * 200_000, "[" * 300_000, "- " * 100_000, "|a|b|\n|-|-|\n" + "|x|y|\n" * 90_000]
)
def test_markdown_of_any_size_is_a_page_of_at_most_two_thousand_nodes(read, text):
    page = read(user(text), **{"as": "markdown"}).content.decode()
    assert len(re.findall(r"<[a-z]", page)) < 2_000


def test_a_json_value_opens_level_by_level(client, store):
    value = {"rows": [{"name": "<b>apple</b>"}, {"name": "pear"}]}
    url = store(session(tool_result(value), model("answer"))).get_absolute_url() + "messages/1/parts/1"
    top = client.get(url, {"as": "json"}).content.decode()
    assert "2 items" in top
    assert "apple" not in top
    leaf = client.get(url, {"as": "json", "path": "0.0"}).content.decode()
    assert "&lt;b&gt;apple&lt;/b&gt;" in leaf
    assert "pear" not in leaf


def test_an_empty_text_of_a_json_value_is_not_nothing(read):
    page = read(tool_result({"stderr": "", "code": 0, "out": None}), **{"as": "json"}).content.decode()
    assert page.count("empty text") == 1
    assert re.search(r'<code>stderr</code>\s*<span class="muted">empty text</span>', page)
    assert ">0</span>" in page
    assert ">null</span>" in page


def test_json_inside_a_text_is_a_tree_too(read):
    page = read(user(json.dumps({"key": [1, 2, 3]})), **{"as": "json"}).content.decode()
    assert "3 items" in page


@pytest.mark.parametrize("path", ["9", "x", "0.0.0.0", "1" * 300, "0..1"])
def test_a_path_that_leads_nowhere_is_not_found(read, path):
    assert read(tool_result({"a": [1]}), **{"as": "json", "path": path}).status_code == 404


def test_a_list_of_very_many_items_is_shown_in_pieces(read):
    page = read(tool_result(list(range(100_000))), **{"as": "json"}).content.decode()
    assert len(re.findall(r"<[a-z]", page)) < 2_000
    assert "99,900 more" in page


def test_a_message_of_ten_megabytes_is_read_in_pieces(read):
    page = read(user("word " * 2_000_000)).content.decode()
    assert len(page) < 100_000
    assert "9,936,000 characters left" in page


def test_the_copy_is_the_text_as_it_is_recorded(read):
    answer = read(user("a\u202eb\x07"), **{"as": "text"})
    assert answer.content.decode() == "a\u202eb\x07"
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert "sandbox" in answer["Content-Security-Policy"]


@pytest.mark.parametrize("form", ["raw", "markdown"])
def test_marks_that_turn_the_reading_order_are_visible_in_every_form(read, form):
    assert "⟨U+202E⟩" in read(user("a\u202eb"), **{"as": form}).content.decode()


def test_a_picture_is_drawn_from_the_uploaded_file(client, bring):
    def line(content, role="user", number=1):
        return {
            "type": role,
            "uuid": f"u{number}",
            "sessionId": "s",
            "version": "2.0.0",
            "message": {"role": role, "content": content},
            "parentUuid": "u1" if number > 1 else None,
            "timestamp": f"2026-01-01T00:00:0{number}.000Z",
        }

    data = base64.b64encode(PNG).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    lines = [
        line([picture, {"type": "text", "text": "what is it"}]),
        line([{"type": "text", "text": "a dot"}], "assistant", 2),
    ]
    bring("\n".join(json.dumps(item) for item in lines).encode())
    url = Session.unscoped.get().get_absolute_url() + "messages/1/parts/1"
    page = client.get(url).content.decode()
    assert "as=image" in page
    assert 'width="1" height="1"' in page  # the page does not jump when it comes
    assert f"image/png, {len(PNG)} bytes" in page
    assert not re.search("data-copy|0 characters|cannot be shown", page), "there is no text of it"
    answer = client.get(url, {"as": "image"})
    assert answer.content == PNG
    assert answer["Content-Type"] == "image/png"
    assert "sandbox" in answer["Content-Security-Policy"]


def test_a_picture_that_is_not_in_the_file_is_not_found(read):
    assert read(image(700, "image/svg+xml"), **{"as": "image"}).status_code == 404


def test_why_a_picture_is_not_shown_is_said(read):
    page = read(image(700, "image/svg+xml"), **{"as": "raw"}).content.decode()
    assert "This picture cannot be shown: it is not on the message" in html.unescape(page)
    assert "as=image" not in page


def test_the_server_counts_a_selection_and_names_the_tokenizer(client, gap):
    answer = client.post(gap.get_absolute_url() + "selection/tokens", {"text": "hello world"})
    assert answer.content.decode() == "11 characters: 2 tokens (o200k_base)"


def test_every_part_of_a_message_has_a_link_to_its_reader(client, gap):
    page = client.get(gap.get_absolute_url() + "steps?at=2").content.decode()
    assert re.search(r'href="[^"]+/messages/1/parts/1\?as=raw"', page)
