//! From the input of a request to the token ids of its prompt: the chat template, the tokenizer, and what bounds a text
//! before it is tokenised. Knows neither places nor the engine.

use std::sync::Arc;

use crate::chat::ChatTemplate;
use crate::error::Error;
use crate::request::{ChatInput, Input, Request};
use crate::text::{EncodePool, LARGE_TEXT, TokenSpan};

/// What a client is told, and can tell whoever runs the server.
const NO_TEMPLATE: &str = "the model has no chat template; use `/generate` or `/v1/completions`, \
                           or give the server a template with `--chat-template`";

/// Makes prompts.
#[derive(Debug)]
pub struct Prompts {
    encoder: EncodePool,
    template: Option<Arc<ChatTemplate>>,
    /// Token ids are below this.
    vocabulary_size: usize,
}

/// A prompt as token ids, with the length of its text.
pub(super) struct Prompt {
    pub(super) tokens: Vec<u32>,
    pub(super) characters: usize,
}

/// What is known of a text without its tokens.
#[derive(Debug, Clone, Copy)]
struct Size {
    min_tokens: usize,
    characters: usize,
}

// === impl Prompts ===

impl Prompts {
    /// Prompts of a model with or without a chat template. `embeddings` is how many token ids the model knows.
    pub fn new(encoder: EncodePool, template: Option<Arc<ChatTemplate>>, embeddings: u32) -> Self {
        // A model's vocabulary may be padded beyond its tokenizer's: those ids mean nothing.
        let vocabulary_size = encoder.tokenizer().vocabulary_size().min(embeddings as usize);
        Self { encoder, template, vocabulary_size }
    }

    /// Token ids that requests may name are below this.
    pub(super) fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// The prompt of a request, rendered, tokenised and cut to what the request keeps of it.
    ///
    /// # Errors
    /// `Invalid` for one that has no token, or too much text for `max_input_tokens`; otherwise as `render`.
    pub(super) async fn of(&self, request: &mut Request, max_input_tokens: usize) -> Result<Prompt, Error> {
        let input = std::mem::replace(&mut request.input, Input::Tokens(Vec::new()));
        let mut prompt = self.whole(input, request, max_input_tokens).await?;
        if let Some(keep) = request.truncate {
            prompt.tokens.drain(..prompt.tokens.len().saturating_sub(keep));
        }
        Ok(prompt)
    }

    async fn whole(&self, input: Input, request: &Request, max_input_tokens: usize) -> Result<Prompt, Error> {
        let (text, add_special_tokens) = match input {
            Input::Tokens(tokens) => return self.checked_ids(tokens, request.spelling.input),
            Input::Text(text) => (text, true),
            // The template writes the special tokens itself.
            Input::Chat(chat) => (self.render(chat).await?, false),
        };
        let add_special_tokens = request.add_special_tokens.unwrap_or(add_special_tokens);
        let field = request.spelling.input;
        let (text, size) = self.measure(text).await?;
        if request.truncate.is_none() && size.min_tokens > max_input_tokens {
            return Err(oversized(field, &text, size.min_tokens, max_input_tokens));
        }
        let characters = size.characters;
        let encoded = self.encoder.encode(text, add_special_tokens).await;
        let tokens = encoded.map_err(|error| Error::invalid(field, error.to_string()))?;
        if tokens.is_empty() {
            return Err(Error::invalid(field, format!("`{field}` cannot be empty")));
        }
        Ok(Prompt { tokens, characters })
    }

    /// The prompt of a conversation, as the model's chat template writes it.
    ///
    /// # Errors
    /// `Template` when the model has no template, or when it refuses the conversation.
    pub async fn render(&self, chat: ChatInput) -> Result<String, Error> {
        let Some(template) = self.template.clone() else {
            return Err(Error::Template(NO_TEMPLATE.into()));
        };
        let rendered = tokio::task::spawn_blocking(move || template.render(&chat)).await;
        rendered
            .map_err(|error| Error::Internal(error.to_string().into()))?
            .map_err(|error| Error::Template(error.to_string().into()))
    }

    /// The tokens of a text and what each stands for.
    ///
    /// # Errors
    /// `Invalid` when the text cannot be tokenised.
    pub async fn spans(&self, text: String, add_special_tokens: bool) -> Result<Vec<TokenSpan>, Error> {
        let spans = self.encoder.encode_spans(text, add_special_tokens).await;
        spans.map_err(|error| Error::invalid("inputs", error.to_string()))
    }

    /// The text of token ids; special tokens show their name.
    ///
    /// # Errors
    /// `Invalid`, naming `field`, for ids beyond the vocabulary.
    pub async fn decode(&self, tokens: Vec<u32>, field: &'static str) -> Result<String, Error> {
        let Prompt { tokens, .. } = self.checked_ids(tokens, field)?;
        let encoder = self.encoder.clone();
        let text = tokio::task::spawn_blocking(move || encoder.tokenizer().decode(&tokens)).await;
        text.map_err(|error| Error::Internal(error.to_string().into()))
    }

    /// What can be said of a text before the work of finding its tokens. A large one is measured elsewhere, so that
    /// streams do not wait.
    async fn measure(&self, text: String) -> Result<(String, Size), Error> {
        let encoder = self.encoder.clone();
        let large = text.len() > LARGE_TEXT;
        let measure = move || {
            let size = Size { min_tokens: encoder.tokenizer().min_tokens(&text), characters: text.chars().count() };
            (text, size)
        };
        if !large {
            return Ok(measure());
        }
        let measured = tokio::task::spawn_blocking(measure).await;
        measured.map_err(|error| Error::Internal(error.to_string().into()))
    }

    fn checked_ids(&self, tokens: Vec<u32>, field: &'static str) -> Result<Prompt, Error> {
        let size = self.vocabulary_size;
        match tokens.iter().find(|&&id| id as usize >= size) {
            Some(id) => Err(Error::invalid(field, format!("`{field}` token ids must be < {size}. Given: {id}"))),
            None => Ok(Prompt { tokens, characters: 0 }),
        }
    }
}

/// A text that cannot fit whatever its tokens are.
fn oversized(field: &'static str, text: &str, least: usize, most: usize) -> Error {
    let bytes = text.len();
    Error::invalid(
        field,
        format!("`{field}` must have less than {most} tokens. Given: {bytes} bytes, at least {least}"),
    )
}
