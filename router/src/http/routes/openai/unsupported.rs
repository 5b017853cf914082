//! Fields of OpenAI's API, and of what other servers add to it, whose features do not exist here. A client may send them
//! with a value that asks for nothing.

use crate::http::screen::{BOOLEAN, FALSE, LEAVE_OUT, Neutral, Unsupported};

const TRUE: Neutral = Neutral::Values(&["true"]);
const ONE: Neutral = Neutral::Values(&["1"]);
const ZERO: Neutral = Neutral::Values(&["0"]);
const TEXT_FORMAT: Neutral = Neutral::Values(&[r#"{"type":"text"}"#]);
const TEXT_ALONE: Neutral = Neutral::Values(&[r#"["text"]"#]);
const NO_CALL: Neutral = Neutral::Values(&[r#""none""#, r#""auto""#]);
const NO_EFFORT: Neutral = Neutral::Values(&[r#""none""#]);
const LEFT: Neutral = Neutral::Values(&[r#""left""#]);

const IN_TEMPLATE: &str = "hand the template what it understands in `chat_template_kwargs`";
const TOKENIZE: &str = "ask `/tokenize` for token ids";
const NO_GRAMMAR: &str = "answers cannot be held to a grammar yet";

/// Fields of every request.
pub static REQUEST: [Unsupported; 61] = [
    // OpenAI's own.
    field("tools", Neutral::Empty, "tools do not exist yet"),
    field("tool_choice", NO_CALL, "tools do not exist yet"),
    field("parallel_tool_calls", BOOLEAN, "tools do not exist yet"),
    field("functions", Neutral::Empty, "tools do not exist yet"),
    field("function_call", NO_CALL, "tools do not exist yet"),
    field("response_format", TEXT_FORMAT, NO_GRAMMAR),
    field("modalities", TEXT_ALONE, "answers are text"),
    field("audio", Neutral::Null, "answers are text"),
    field("prediction", Neutral::Null, LEAVE_OUT),
    field("reasoning_effort", NO_EFFORT, IN_TEMPLATE),
    field("verbosity", Neutral::Null, IN_TEMPLATE),
    field("web_search_options", Neutral::Null, "the server connects to nothing"),
    field("moderation", Neutral::Null, LEAVE_OUT),
    field("store", FALSE, "no answer is kept"),
    field("suffix", Neutral::Empty, "write the prompt as the model expects it"),
    // TGI's additions.
    field("tool_prompt", Neutral::Empty, "tools do not exist yet"),
    field("grammar", Neutral::Null, NO_GRAMMAR),
    field("adapter_id", Neutral::Null, "adapters do not exist yet"),
    // vLLM's: sampling.
    field("use_beam_search", FALSE, "use `n`, or `best_of` of `/v1/completions`"),
    field("length_penalty", ONE, "it belongs to beam search"),
    field("early_stopping", FALSE, "it belongs to beam search"),
    field("watermarking", FALSE, "use `watermark`"),
    field("allowed_token_ids", Neutral::Null, "use `logit_bias`"),
    field("bad_words", Neutral::Empty, "use `logit_bias`"),
    field("logits_processors", Neutral::Empty, "no code of a request is run"),
    field("repetition_detection", Neutral::Null, "use `repetition_penalty`"),
    field("thinking_token_budget", Neutral::Null, "use `max_completion_tokens`"),
    field("vllm_xargs", Neutral::Empty, LEAVE_OUT),
    // vLLM's: grammars.
    field("structured_outputs", Neutral::Empty, NO_GRAMMAR),
    field("structural_tag", Neutral::Null, NO_GRAMMAR),
    field("guided_json", Neutral::Null, NO_GRAMMAR),
    field("guided_regex", Neutral::Null, NO_GRAMMAR),
    field("guided_choice", Neutral::Null, NO_GRAMMAR),
    field("guided_grammar", Neutral::Null, NO_GRAMMAR),
    field("guided_decoding_backend", Neutral::Null, NO_GRAMMAR),
    field("guided_whitespace_pattern", Neutral::Null, NO_GRAMMAR),
    // vLLM's: the prompt.
    field("chat_template", Neutral::Null, "templates come from the server's operator: `--tokenizer-config-path`"),
    field("documents", Neutral::Empty, IN_TEMPLATE),
    field("truncation_side", LEFT, "the end of the prompt is kept"),
    field("prompt_embeds", Neutral::Null, "send text or token ids"),
    field("media_io_kwargs", Neutral::Empty, "prompts are text"),
    field("mm_processor_kwargs", Neutral::Empty, "prompts are text"),
    field("return_mm_kwargs", BOOLEAN, "prompts are text"),
    // vLLM's: the answer.
    field("include_reasoning", TRUE, "reasoning is part of the text"),
    field("logprob_token_ids", Neutral::Null, "use `logprobs`"),
    field("return_token_ids", FALSE, TOKENIZE),
    field("return_token_offsets", FALSE, TOKENIZE),
    field("return_token_strs", FALSE, TOKENIZE),
    field("return_prompt_text", FALSE, "ask `/chat_tokenize` for the prompt"),
    field("routed_experts_prompt_start", ZERO, LEAVE_OUT),
    field("stream_interval", ONE, "each token is sent at once"),
    // vLLM's: the server.
    field("priority", ZERO, "requests are served in their order"),
    field("request_id", Neutral::Null, "send the header `x-request-id`"),
    field("session_id", Neutral::Null, LEAVE_OUT),
    field("kv_transfer_params", Neutral::Empty, LEAVE_OUT),
    field("ec_transfer_params", Neutral::Empty, LEAVE_OUT),
    // Common elsewhere.
    field("regex", Neutral::Null, NO_GRAMMAR),
    field("ebnf", Neutral::Null, NO_GRAMMAR),
    field("json_schema", Neutral::Null, NO_GRAMMAR),
    field("top_a", ZERO, "use `min_p`"),
    field("tfs", ONE, "use `min_p`"),
];

/// Fields that `/v1/completions` has and chat has not.
pub static CHAT: [Unsupported; 2] =
    [field("echo", FALSE, "the conversation is not part of the answer"), field("best_of", ONE, "use `n`")];

/// Fields of a message. Clients send back what a server once answered.
pub static MESSAGE: [Unsupported; 4] = [
    field("refusal", Neutral::Null, LEAVE_OUT),
    field("audio", Neutral::Null, "messages are text"),
    field("function_call", Neutral::Null, "use `tool_calls`"),
    field("annotations", Neutral::Empty, LEAVE_OUT),
];

/// Fields of `stream_options`.
pub static STREAM_OPTIONS: [Unsupported; 1] = [field("include_obfuscation", FALSE, "chunks are not padded")];

const fn field(name: &'static str, neutral: Neutral, hint: &'static str) -> Unsupported {
    Unsupported { name, neutral, hint }
}
