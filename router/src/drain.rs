//! Ending well: signals, readiness off, a deadline for running streams.
