"""Pages of a node, made of whatever a stranger may answer."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from connectors.waku_rest.answers import (
    MAX_ELEMENTS,
    read_page,
    read_store_answer,
)

_GOOD = b'{"payload":"AQ==","contentTopic":"t"}'
_MANY = 200_000


@pytest.mark.parametrize("rubbish", [b"1", b"[[]]", b'"%s"' % (b"x" * 1_000)])
def test_memory_does_not_grow_with_rubbish(rubbish: bytes) -> None:
    """All is counted, and little is kept."""
    body = b"[%b]" % b",".join([rubbish] * (MAX_ELEMENTS // 10))
    tracemalloc.start()
    try:
        page = read_page(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.undecodable.count == MAX_ELEMENTS // 10
    assert [one.raw for one in page.undecodable.first] == [rubbish[:200]] * 10
    assert peak < 200_000


def test_list_that_no_node_can_have_cached_is_read_up_to_a_bound() -> None:
    """What comes first is given, and that there was more is told."""
    body = b"[%b,%b]" % (_GOOD, b",".join([b"1"] * _MANY))
    page = read_page(body)
    assert len(page.messages) == 1
    assert page.undecodable.count == MAX_ELEMENTS - 1
    assert page.broken_off == "the list has more than 100000 elements"


def test_messages_of_a_store_are_bounded_in_the_same_way() -> None:
    """Nothing of such an answer is used: it can be asked for again."""
    messages = b",".join([b"{}"] * _MANY)
    answer = read_store_answer(b'{"statusCode":200,"messages":[%b]}' % messages)
    with pytest.raises(ValueError, match="more than 100000"):
        answer.page(None)


@pytest.mark.parametrize("messages", ["null", "7", '"[]"', '{"0":[]}'])
def test_messages_of_a_store_are_a_list(messages: str) -> None:
    """Else the answer is none of a store."""
    body = '{"statusCode":200,"messages":%s}' % messages  # noqa: UP031 - braces
    with pytest.raises(ValueError, match="no list"):
        read_store_answer(body.encode()).page(None)


@pytest.mark.parametrize("space", ["", " ", "\r\n\t"])
def test_brackets_inside_strings_separate_nothing(space: str) -> None:
    """Elements are split as JSON has it, whatever stands in them."""
    topics = ['],[{"', "\\", '\\"', ",", "", "[[{{"]
    items = [{"payload": "", "contentTopic": topic} for topic in topics]
    body = space + json.dumps(items).replace(", ", f",{space}") + space
    page = read_page(body.encode())
    assert [message.content_topic for message in page.messages] == topics
    assert (page.undecodable.count, page.broken_off) == (0, "")


@pytest.mark.parametrize("body", [b"", b"{}", b"[", b"nope", b'"[1]"', b" ", b"[}"])
def test_what_is_no_list_is_no_page(body: bytes) -> None:
    """Nothing can be made of it."""
    with pytest.raises(ValueError, match="list"):
        read_page(body)
