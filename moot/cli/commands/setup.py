"""`moot setup`: store the key, the endpoint and the default model, and test them with one call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

from typer import Option

from moot.cli.group import command
from moot.cli.options import JsonOption, command_line
from moot.cli.terminal import one_line, print_json, print_note
from moot.state import settings
from moot.state.errors import InputError, ModelError
from moot.state.settings import redact_url, register_secret

if TYPE_CHECKING:
    from moot.models.registry import Access

LISTED = 20
"""Maximum number of models to list when the user chooses the default model."""


@command(
    panel="Set up and inspect",
    examples=(
        "",
        "--key-env MISTRAL_API_KEY --base-url https://api.mistral.ai/v1 --model mistral-small-latest",
        "--base-url http://localhost:11434/v1 --model llama3.2 --no-key",
    ),
)
def setup(
    base_url: Annotated[
        str | None,
        Option(
            "--base-url",
            metavar="URL",
            help="Address of an OpenAI-compatible endpoint. Default: the OpenAI API.",
        ),
    ] = None,
    key_env: Annotated[
        str | None,
        Option(
            "--key-env",
            metavar="NAME",
            help="Environment variable that holds the API key. The key itself is not stored.",
        ),
    ] = None,
    key_stdin: Annotated[
        bool, Option("--key-stdin", help="Read the API key from the first line of stdin.")
    ] = False,
    no_key: Annotated[
        bool, Option("--no-key", help="Use this option if the endpoint needs no API key.")
    ] = False,
    model: Annotated[
        str | None, Option("--model", "-m", metavar="NAME", help="Model that debates use by default.")
    ] = None,
    no_test: Annotated[
        bool, Option("--no-test", help="Store the settings without testing them with a call to the model.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Store your API key, endpoint and default model once for all debates.

    In a terminal, the command asks for every value that you did not give as an option. To test the settings,
    `moot setup` makes one small model call and prints the price of the call. If the test call succeeds, the
    command stores the settings in a file in your configuration folder. Only you can read this file.
    Environment variables and a `.env` file take precedence over the settings that `moot setup` stored.
    """
    from moot.models.registry import OPENAI_URL, Access

    if sum(map(bool, (key_env, key_stdin, no_key))) > 1:
        raise InputError(
            "several sources of the key are given: use only one of --key-env, --key-stdin and --no-key"
        )
    asks = sys.stdin.isatty() and not key_stdin
    url = base_url if base_url is not None or not asks else _ask_url(OPENAI_URL)
    url = "" if url in (None, OPENAI_URL) else url
    stored, key = _key(url, key_env, from_stdin=key_stdin, asks=asks and not no_key, without=no_key)
    if not key and not url:
        raise InputError(
            "OpenAI needs a key: add --key-env NAME or --key-stdin, or give another endpoint with "
            "--base-url URL"
        )
    register_secret(key or None)
    # The prices of a model depend on the endpoint.
    settings.set_variables({"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url})
    name, offered = _model(model, Access(key or "not-needed", url or None), asks=asks)
    settings.set_variables({"MOOT_MODEL": name})
    tested = "" if no_test else _test(name)
    path = settings.write_user_settings(
        {"OPENAI_API_KEY": stored, "OPENAI_BASE_URL": url, "MOOT_MODEL": name}
    )
    if as_json:
        return print_json(
            {
                "file": str(path),
                "base_url": redact_url(url or OPENAI_URL),
                "key": f"${key_env}" if key_env else "stored" if key else "none",
                "model": name,
                "models": len(offered),
                "test": tested or None,
            }
        )
    if tested:
        print_note(f"{one_line(name, 60)} {one_line(tested, 300)}")
    print_note(f"wrote {path}")
    print_note(f"  try it  {command_line('Should we split the monolith?')}")


def _ask_url(default: str) -> str:
    """Ask the user for the endpoint's URL. The default is the endpoint in use."""
    import typer

    current = settings.variable("OPENAI_BASE_URL") or default
    return str(typer.prompt("Endpoint", default=current, err=True)).strip()


def _key(url: str, key_env: str | None, *, from_stdin: bool, asks: bool, without: bool) -> tuple[str, str]:
    """Return the text that the user settings store for an API key, and the key itself.

    The text is the key, or a reference such as `${NAME}` to the environment variable with the key.

    Both are empty if no key is used.

    Raises:
        InputError: the named variable is not set, or stdin is empty.
    """
    if without:
        return "", ""
    if key_env is not None:
        if not key_env.isidentifier() or (key := settings.variable(key_env)) is None:
            raise InputError(
                f"--key-env names the environment variable {key_env!r}, which is not set: set it, or "
                "name another variable"
            )
        return f"${{{key_env}}}", key
    if from_stdin:
        if not (key := sys.stdin.readline().strip()):
            raise InputError("stdin contains no key: with --key-stdin, pass the key on stdin")
        return key, key
    # A key is sent only to the endpoint to which it belongs.
    known = settings.variable("OPENAI_API_KEY") or ""
    current = known if url == (settings.variable("OPENAI_BASE_URL") or "") else ""
    if asks:
        import typer

        hint = " (Enter keeps the current key)" if current else " (Enter for none)" if url else ""
        given = typer.prompt(f"API key{hint}", default="", hide_input=True, show_default=False, err=True)
        return given.strip() or current, given.strip() or current
    return current, current


def _model(given: str | None, access: Access, *, asks: bool) -> tuple[str, Sequence[str]]:
    """Return the default model and the list of models that the endpoint offers.

    Raises:
        InputError: the endpoint cannot be used, does not offer the model, or offers several models.
    """
    import asyncio

    from moot.models.endpoints import offered_models
    from moot.models.registry import check_name

    offered = asyncio.run(offered_models(access))
    if given is None and len(offered) == 1:
        return offered[0], offered
    if given is None and asks and offered:
        given = _ask_model(offered)
    listed = f"{', '.join(offered[:LISTED])}{' …' if len(offered) > LISTED else ''}"
    if given is None:
        raise InputError(f"no model is given: add --model NAME. The endpoint offers {listed or 'no models'}")
    check_name(given)
    if offered and given not in offered:
        near = get_close_matches(given, offered, n=3)
        raise InputError(
            f"the endpoint does not offer the model {given!r}: choose from "
            f"{', '.join(near) if near else listed}"
        )
    return given, offered


def _ask_model(offered: Sequence[str]) -> str:
    """Let the user choose one of the offered models at the terminal."""
    import typer

    from moot.models.registry import Models

    models, current = Models(), settings.variable("MOOT_MODEL")
    widest = max(len(one_line(name, 60)) for name in offered[:LISTED])
    for number, name in enumerate(offered[:LISTED], start=1):
        prices = [
            models.cost_usd(name, {"prompt_tokens": sent, "completion_tokens": replied})
            for sent, replied in ((10**6, 0), (0, 10**6))
        ]
        known = [each for each in prices if each is not None]
        price = f"US$ {known[0]:5.2f} in, {known[1]:5.2f} out per million tokens" if len(known) == 2 else ""
        print_note(f"{number:3} {one_line(name, 60):{widest}}  {price}".rstrip())
    if len(offered) > LISTED:
        print_note(f"… and {len(offered) - LISTED} more: `moot models` lists them")
    default = current if current in offered else offered[0]
    said = str(typer.prompt("Default model, number or name", default=default, err=True)).strip()
    return offered[int(said) - 1] if said.isdecimal() and 0 < int(said) <= len(offered) else said


def _test(name: str) -> str:
    """Call the model once, and return information about the reply.

    Raises:
        ModelError: the call failed. Nothing has been stored.
    """
    from moot.cli.commands.doctor import inspect_models
    from moot.configuration import validate

    finding = inspect_models(validate({"model": name}))[0]
    if not finding.replied:
        raise ModelError(
            f"{finding.message}. The settings were not stored. To store them without a test, add --no-test"
        )
    return finding.message
