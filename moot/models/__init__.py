"""Chat models: providers, structured output, retries, usage, and the offline model."""
