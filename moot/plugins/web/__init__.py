"""Servers for the live page and for MCP, and Moot's part of the LangGraph server."""
