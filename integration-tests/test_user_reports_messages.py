"""Faults of conversations that users of such servers have reported: contents that are null, absent or lists, roles that
templates do not know, templates in places where nobody looked."""

import pytest

from support.fake import faked
from support.folders import edited, rewrite

HELLO = {"role": "user", "content": "Hello"}
CALL = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"


def prompt(client, messages: list[dict[str, object]]) -> str:
    reply = client.post("/chat_tokenize", {"messages": messages})
    assert reply.status == 200, reply.text
    return reply.json()["templated_text"]


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
@pytest.mark.parametrize(
    ("content", "plain"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "text", "text": "ab"}], "ab"),
        ([], ""),
        (None, ""),
    ],
    ids=["two parts", "one part", "no part", "null"],
)
def test_contents_mean_the_same_in_every_shape(guarded, role, content, plain):
    def around(message: dict[str, object]) -> list[dict[str, object]]:
        return [message, HELLO] if role == "system" else [HELLO, message, HELLO]

    given = around({"role": role, "content": content})
    assert prompt(guarded, given) == prompt(guarded, around({"role": role, "content": plain}))
    reply = guarded.post("/v1/chat/completions", {"messages": given, "max_tokens": 2})
    assert reply.status == 200, reply.text


def test_an_absent_content_is_an_empty_one(guarded):
    calls = {"role": "assistant", "tool_calls": [CALL]}
    answer = {"role": "tool", "tool_call_id": "call-1", "content": "2"}
    assert prompt(guarded, [HELLO, calls, answer]) == prompt(guarded, [HELLO, calls | {"content": None}, answer])


def test_a_developer_is_a_system_and_neighbours_are_one_message(guarded):
    one, two = {"role": "developer", "content": "Be brief."}, {"role": "system", "content": "Be kind."}
    assert prompt(guarded, [one, HELLO]) == prompt(guarded, [one | {"role": "system"}, HELLO])
    merged = prompt(guarded, [one, two, HELLO])
    assert merged.count("<|im_start|>system") == 1
    assert "Be brief." in merged and "Be kind." in merged


@pytest.mark.parametrize(
    "content",
    [5, {"type": "text", "text": "a"}, [5], [{"text": "a"}], [{"type": "text"}], [{"type": "audio"}], [["text", "a"]]],
    ids=str,
)
def test_contents_of_no_shape_are_refused(guarded, content):
    reply = guarded.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
    assert reply.status == 400, reply.text
    assert "messages" in reply.json()["error"]["message"]


def without_template(folder, bos=None):
    (folder / "chat_template.jinja").unlink(missing_ok=True)

    def change(config):
        config.pop("chat_template", None)
        if bos is not None:
            config["bos_token"] = bos

    rewrite(folder / "tokenizer_config.json", change)
    return folder


def test_a_template_in_a_file_of_its_own_is_used(tmp_path, demo_folder):
    folder = without_template(edited(demo_folder, tmp_path / "model"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    with faked(tmp_path, folder) as (client, _):
        assert prompt(client, [HELLO]) == "[user]Hello"


def test_named_templates_and_a_bos_token_as_an_object_are_understood(tmp_path, demo_folder):
    bos = {"__type": "AddedToken", "content": "<|im_start|>", "lstrip": False, "rstrip": False, "special": True}
    folder = without_template(edited(demo_folder, tmp_path / "model"), bos)
    named = [{"name": "default", "template": "{{ bos_token }}" + TEMPLATE}, {"name": "tool_use", "template": "tools"}]
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(chat_template=named))
    with faked(tmp_path, folder) as (client, _):
        assert prompt(client, [HELLO]) == "<|im_start|>[user]Hello"


def test_a_model_without_a_template_generates_and_says_so_to_a_chat(tmp_path, demo_folder):
    folder = without_template(edited(demo_folder, tmp_path / "model"))
    with faked(tmp_path, folder) as (client, _):
        assert client.generate("a", max_new_tokens=2)["generated_text"]
        reply = client.post("/v1/chat/completions", {"messages": [HELLO]})
        assert reply.status == 400, reply.text
        assert "no chat template" in reply.json()["error"]["message"]


def test_what_a_template_raises_reaches_the_client(tmp_path, demo_folder):
    folder = without_template(edited(demo_folder, tmp_path / "model"))
    (folder / "chat_template.jinja").write_text("{{ raise_exception('roles must alternate here') }}")
    with faked(tmp_path, folder) as (client, _):
        for stream in (False, True):
            reply = client.post("/v1/chat/completions", {"messages": [HELLO], "stream": stream})
            assert reply.status == 400, reply.text
            assert "roles must alternate here" in reply.json()["error"]["message"]
