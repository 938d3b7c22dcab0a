"""Language models: the one call, its retries and fallbacks, and the built-in offline model."""
