"""What a node may ask for: model calls and replies as data, effects, and helpers for asyncio."""
