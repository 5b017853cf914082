"""What the integration tests share: starting servers, speaking HTTP, prompts, and the reference implementation."""
