//! The HTTP front end: routes, wire types and their conversions. Each API is a projection of the same events.
