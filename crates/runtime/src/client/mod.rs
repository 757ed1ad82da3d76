//! Reads from the cache, writes to the server.
