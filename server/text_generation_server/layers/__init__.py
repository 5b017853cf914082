"""The parts a decoder is made of. Each declares its parameters; the loader fills them."""
