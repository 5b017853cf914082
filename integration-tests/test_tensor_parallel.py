"""Several ranks are one model: the same tokens as one rank, an impossible split refused, and one fate."""

import pytest

from support.client import at_once
from support.prompts import many
from support.requests import endless_stream
from support.server import gone, launched, wait_for

PROMPTS, TOKENS, AT_ONCE = 20, 8, 10


@pytest.fixture(scope="module")
def three_ranks(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("ranks"), "--num-shard", "3") as running:
        yield running


def completions(client) -> list[list[int]]:
    prompts, found = many(PROMPTS), []
    for start in range(0, PROMPTS, AT_ONCE):
        group = prompts[start : start + AT_ONCE]
        found += at_once(lambda prompt: client.tokens(prompt, max_new_tokens=TOKENS), group)
    return found


def test_three_ranks_give_the_tokens_of_one(client, three_ranks):
    assert len(three_ranks.shards()) == 3
    assert completions(three_ranks.client) == completions(client)


def test_two_ranks_are_refused_with_the_reason(tmp_path):
    with launched(tmp_path, "--num-shard", "2", ready=False) as server:
        server.exits_with("2", "heads")


def test_killed_rank_ends_the_group(three_ranks):
    below = three_ranks.descendants()
    with endless_stream(three_ranks.client) as stream:
        frames = stream.frames()
        next(frames)
        three_ranks.shards()[2].kill()
        *_, last = frames
    assert last["error_type"] == "generation"
    assert three_ranks.wait_exit() not in (0, None)
    assert "shard 2" in three_ranks.last_lines(1).lower(), three_ranks.last_lines(40)
    wait_for(lambda: gone(below), 3, "no process left")
