"""How the weights of a linear layer are stored and multiplied."""
