"""Effects, model calls and replies as data: the requests that a node may make."""
