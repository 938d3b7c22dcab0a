"""Runs the command line: every failure becomes one message and one exit code."""

import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moot.graph.cli.screen.output import complain
from moot.state.errors import ConfigError, MootError
from moot.state.redaction import shown_url
from moot.state.settings import is_on, read_dotenv


def run_command_line() -> None:
    """Run `moot` with the process's arguments and exit.

    Errors of ours are shown without a traceback and exit with their own code; anything else is a bug.
    """
    from moot.graph.cli.group import make_group

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a letter is no reason to stop.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if idle := read_dotenv(Path.cwd()):
            complain(f"warning: {idle}")
        with _exporting_spans():
            make_group().main(prog_name="moot")
    except MootError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Keeps the interpreter from flushing into the closed pipe once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # the command line's edge: what reaches it is a bug of ours
        if is_on("MOOT_DEBUG"):
            complain(shown_url("".join(traceback.format_exception(error))))
        else:
            complain(f"internal error: {type(error).__name__}: {error} (MOOT_DEBUG=1 shows where)")
        sys.exit(1)


@contextmanager
def _exporting_spans() -> Iterator[None]:
    """Send OpenTelemetry's spans of a `with` block by OTLP over HTTP, if `MOOT_OTEL` asks for them."""
    if not is_on("MOOT_OTEL"):
        yield
        return
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
