"""Spans of the command's own runs, sent where OpenTelemetry's variables say, if `MOOT_OTEL` asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moot.state.errors import ConfigError


@contextmanager
def exporting_spans() -> Iterator[None]:
    """Send spans for a `with` block, by OTLP over HTTP.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError("MOOT_OTEL asks for OpenTelemetry: pip install 'moot[otel]'") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "moot"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
