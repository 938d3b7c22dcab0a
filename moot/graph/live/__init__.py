"""The live page: debates in a browser, as they happen; `moot serve`, and `/moot` of LangGraph's server."""
