"""Several ranks that run one model."""
