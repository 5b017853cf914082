//! KV cache accounting: which blocks are free, in use or cached. Knows block ids only, never their content.
