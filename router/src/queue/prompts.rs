//! From the input of a request to the token ids of its prompt: the chat template, the tokenizer, and what bounds a text
//! before it is tokenised. Knows neither places nor the engine.

use std::sync::Arc;

use crate::chat::ChatTemplate;
use crate::error::Error;
use crate::request::{ChatInput, Input, Request};
use crate::text::{EncodePool, Tokenizer};

/// Makes prompts.
#[derive(Debug)]
pub struct Prompts {
    /// Tokenises.
    pub encoder: EncodePool,
    /// Renders conversations; `None` when the model has no template.
    pub template: Option<Arc<ChatTemplate>>,
    /// Bounds texts and token ids.
    pub vocabulary: Vocabulary,
}

/// What bounds a prompt before it is tokenised.
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary {
    /// Token ids are below this.
    pub size: u32,
    /// No token stands for more bytes of text.
    pub longest_token: usize,
}

/// A prompt as token ids, with the length of its text.
pub(super) struct Prompt {
    pub(super) tokens: Vec<u32>,
    pub(super) characters: usize,
}

// === impl Vocabulary ===

impl Vocabulary {
    /// Measures a tokenizer's vocabulary; `size` is the width of the model's embedding.
    pub fn of(tokenizer: &Tokenizer, size: u32) -> Self {
        let vocabulary = tokenizer.inner().get_vocab(true);
        Self { size, longest_token: vocabulary.keys().map(String::len).max().unwrap_or(1) }
    }
}

// === impl Prompts ===

impl Prompts {
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
        let field = request.spelling.input;
        if request.truncate.is_none() {
            self.check_bytes(&text, field, max_input_tokens)?;
        }
        let characters = text.chars().count();
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
            return Err(Error::Template("the model has no chat template; use `/generate` or `/v1/completions`".into()));
        };
        let rendered = tokio::task::spawn_blocking(move || template.render(&chat)).await;
        rendered
            .map_err(|error| Error::Internal(error.to_string().into()))?
            .map_err(|error| Error::Template(error.to_string().into()))
    }

    /// Refuses a text that cannot fit whatever its tokens are, before the work of finding them.
    fn check_bytes(&self, text: &str, field: &'static str, most: usize) -> Result<(), Error> {
        let least = text.len() / self.vocabulary.longest_token.max(1);
        if least <= most {
            return Ok(());
        }
        let bytes = text.len();
        let message = format!("`{field}` must have less than {most} tokens. Given: {bytes} bytes, at least {least}");
        Err(Error::invalid(field, message))
    }

    fn checked_ids(&self, tokens: Vec<u32>, field: &'static str) -> Result<Prompt, Error> {
        let size = self.vocabulary.size;
        match tokens.iter().find(|&&id| id >= size) {
            Some(id) => Err(Error::invalid(field, format!("`{field}` token ids must be < {size}. Given: {id}"))),
            None => Ok(Prompt { tokens, characters: 0 }),
        }
    }
}
