"""Parsing the answers of a node, whatever an untrusted node returns."""

from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from connectors.waku_rest import json_list
from connectors.waku_rest.answers import read_page, read_store_answer
from connectors.waku_rest.json_list import MAX_ELEMENT_BYTES, MAX_ELEMENTS

_GOOD = b'{"payload":"AQ==","contentTopic":"t"}'
_MANY = 200_000
_LARGE_BYTES = 4 * 1024 * 1024


@pytest.mark.parametrize("rubbish", [b"1", b"[[]]", b'"%s"' % (b"x" * 1_000)])
def test_memory_does_not_grow_with_rubbish(rubbish: bytes) -> None:
    """Every bad element is counted, and none is stored."""
    body = b"[%b]" % b",".join([rubbish] * (MAX_ELEMENTS // 10))
    tracemalloc.start()
    try:
        page = read_page(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.undecodable.count == MAX_ELEMENTS // 10
    assert 0 < len(page.undecodable.reason) < 200
    assert peak < 200_000


def test_too_long_list_is_read_up_to_a_limit() -> None:
    """The first elements are returned, and that there were more."""
    body = b"[%b,%b]" % (_GOOD, b",".join([b"1"] * _MANY))
    page = read_page(body)
    assert len(page.messages) == 1
    assert page.undecodable.count == MAX_ELEMENTS - 1
    assert page.broken_off == "the list has more than 100000 elements"


def test_too_long_store_answer_is_refused() -> None:
    """It can be requested again."""
    messages = b",".join([b"{}"] * _MANY)
    answer = read_store_answer(b'{"statusCode":200,"messages":[%b]}' % messages)
    with pytest.raises(ValueError, match="more than 100000"):
        answer.page(None)


@pytest.mark.parametrize("messages", ["null", "7", '"[]"', '{"0":[]}'])
def test_store_answer_without_a_list_is_refused(messages: str) -> None:
    """It is no answer of a store."""
    body = '{"statusCode":200,"messages":%s}' % messages  # noqa: UP031 - braces
    with pytest.raises(ValueError, match="not a list"):
        read_store_answer(body.encode()).page(None)


@pytest.mark.parametrize("space", ["", " ", "\r\n\t"])
def test_brackets_inside_strings_do_not_end_an_element(space: str) -> None:
    """Elements are split as JSON defines them."""
    topics = ['],[{"', "\\", '\\"', ",", "", "[[{{"]
    items = [{"payload": "", "contentTopic": topic} for topic in topics]
    body = space + json.dumps(items).replace(", ", f",{space}") + space
    page = read_page(body.encode())
    assert [message.content_topic for message in page.messages] == topics
    assert (page.undecodable.count, page.broken_off) == (0, "")


@pytest.mark.parametrize("body", [b"", b"{}", b"[", b"nope", b'"[1]"', b" ", b"[}"])
def test_answer_without_a_list_is_no_page(body: bytes) -> None:
    """It raises an error."""
    with pytest.raises(ValueError, match="list"):
        read_page(body)


def test_too_long_message_does_not_lose_the_others_of_its_page() -> None:
    """It is not parsed: no message of a relay is that long."""
    long = b'{"payload":"%b","contentTopic":"t"}' % (b"A" * MAX_ELEMENT_BYTES)
    page = read_page(b"[%b,%b,%b]" % (_GOOD, long, _GOOD))
    assert len(page.messages) == 2
    assert page.undecodable.count == 1
    assert f"but at most {MAX_ELEMENT_BYTES} are allowed" in page.undecodable.reason


def test_page_of_nothing_but_marks_is_read_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The messages before them are returned, and that there was more."""
    monkeypatch.setattr(json_list, "MAX_MARKS", 1_000)
    page = read_page(b"[%b,%b]" % (_GOOD, b"," * 1_000))
    assert len(page.messages) == 1
    assert page.broken_off == "the list has more than 1000 quotes, commas and brackets"


def turns_of_others(work: Callable[[], object]) -> int:
    """Return how often another thread got its turn while this one worked."""
    turns, ended, begun = 0, threading.Event(), threading.Event()

    def take_turns() -> None:
        nonlocal turns
        while not ended.wait(0.001):
            begun.set()
            turns += 1

    other = threading.Thread(target=take_turns)
    other.start()
    begun.wait()
    before = turns
    try:
        work()
    except ValueError:
        pass
    finally:
        found = turns - before
        ended.set()
        other.join()
    return found


@pytest.mark.parametrize(
    "filling", [b"\\a", b'\\"', b"\\\\"], ids=["escapes", "quotes", "backslashes"]
)
def test_large_hostile_page_does_not_hold_up_other_threads(filling: bytes) -> None:
    """The server of the mirror's probes is one of them."""
    body = b'["%b"]' % (filling * (_LARGE_BYTES // len(filling)))
    assert turns_of_others(lambda: read_page(body)) > 20
