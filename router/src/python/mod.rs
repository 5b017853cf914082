//! The native module of the wheel, `text_generation_server._native`.
