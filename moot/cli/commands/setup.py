"""`moot setup`: store the key, the endpoint and the default model, and test them with one call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from moot.cli.group import command
from moot.cli.options import JsonOption, command_line
from moot.cli.terminal import one_line, print_json, print_note
from moot.state import settings
from moot.state.errors import InputError, ModelError
from moot.state.settings import redact_urls, register_secret

if TYPE_CHECKING:
    from moot.models.registry import Access

MAX_LISTED_MODELS = 20
"""Maximum number of the endpoint's models to list when the user chooses the default model."""


PROVIDERS = {
    "OpenAI": "https://api.openai.com/v1",
    "Anthropic": "https://api.anthropic.com/v1",
    "Google": "https://generativelanguage.googleapis.com/v1beta/openai",
    "Ollama": "http://localhost:11434/v1",
    "LM Studio": "http://localhost:1234/v1",
    "llama.cpp": "http://localhost:8080/v1",
    "OpenRouter": "https://openrouter.ai/api/v1",
    "Azure": "https://RESOURCE.openai.azure.com/openai/v1",
    "Other": "",
}
"""Addresses of the OpenAI-compatible endpoints that the providers document, in the order of the list."""


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
    no_key: Annotated[bool, Option("--no-key", help="Use the endpoint without an API key.")] = False,
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
    is_interactive = sys.stdin.isatty() and not key_stdin
    url = base_url if base_url is not None or not is_interactive else _ask_url(OPENAI_URL)
    url = "" if url in (None, OPENAI_URL) else url
    stored_key, key = _key(
        url, key_env, from_stdin=key_stdin, is_interactive=is_interactive and not no_key, no_key=no_key
    )
    if not key and not url:
        raise InputError(
            "OpenAI needs a key: add --key-env NAME or --key-stdin, or give another endpoint with "
            "--base-url URL"
        )
    register_secret(key or None)
    # The prices of a model depend on the endpoint.
    settings.set_variables({"OPENAI_API_KEY": key, "OPENAI_BASE_URL": url})
    name, model_names = _model(model, Access(key or "not-needed", url or None), is_interactive=is_interactive)
    settings.set_variables({"MOOT_MODEL": name})
    test_result = "" if no_test else _test(name)
    path = settings.write_user_settings(
        {"OPENAI_API_KEY": stored_key, "OPENAI_BASE_URL": url, "MOOT_MODEL": name}
    )
    if as_json:
        return print_json(
            {
                "file": str(path),
                "base_url": redact_urls(url or OPENAI_URL),
                "key": f"${key_env}" if key_env else "stored" if key else "none",
                "model": name,
                "models": len(model_names),
                "test": test_result or None,
            }
        )
    if test_result:
        print_note(f"{one_line(name, 60)} {one_line(test_result, 300)}")
    print_note(f"wrote {path}")
    print_note(f"  try it  {command_line('Should we split the monolith?')}")


def _ask_url(default: str) -> str:
    """Let the user choose a provider, and return the URL of its endpoint. The default is the one in use."""
    current = settings.variable("OPENAI_BASE_URL") or default
    for number, (name, url) in enumerate(PROVIDERS.items(), start=1):
        print_note(f"{number:3} {name:20} {url}".rstrip())
    answer = str(typer.prompt("Provider, number or URL", default=current, err=True)).strip()
    if not answer.isdecimal() or not 0 < int(answer) <= len(PROVIDERS):
        return answer
    url = [*PROVIDERS.values()][int(answer) - 1]
    if url and "RESOURCE" not in url:
        return url
    label = "Name of your Azure resource" if url else "URL"
    text = str(typer.prompt(label, err=True)).strip()
    return url.replace("RESOURCE", text) if url and "://" not in text else text


def _key(
    url: str, key_env: str | None, *, from_stdin: bool, is_interactive: bool, no_key: bool
) -> tuple[str, str]:
    """Return the text to store for the API key, and the key itself.

    The stored text is the key, or a reference such as `${NAME}` to the environment variable with the key.

    Both are empty if no key is used.

    Raises:
        InputError: the named variable is not set, or stdin is empty.
    """
    if no_key:
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
    configured_key = settings.variable("OPENAI_API_KEY") or ""
    current_key = configured_key if url == (settings.variable("OPENAI_BASE_URL") or "") else ""
    if is_interactive:
        hint = " (Enter keeps the current key)" if current_key else " (Enter for none)" if url else ""
        entered_key = typer.prompt(
            f"API key{hint}", default="", hide_input=True, show_default=False, err=True
        )
        return entered_key.strip() or current_key, entered_key.strip() or current_key
    return current_key, current_key


def _model(name: str | None, access: Access, *, is_interactive: bool) -> tuple[str, Sequence[str]]:
    """Choose the default model from the models that the endpoint offers.

    Return the name of the chosen model and the names of all offered models.

    Raises:
        InputError: the endpoint cannot be used, does not offer the model, or offers several models.
    """
    import asyncio

    from moot.models.endpoints import offered_models
    from moot.models.registry import check_name

    model_names = asyncio.run(offered_models(access))
    if name is None and len(model_names) == 1:
        return model_names[0], model_names
    if name is None and is_interactive and model_names:
        name = _ask_model(model_names)
    choices = (
        f"{', '.join(model_names[:MAX_LISTED_MODELS])}{' …' if len(model_names) > MAX_LISTED_MODELS else ''}"
    )
    if name is None:
        raise InputError(f"no model is given: add --model NAME. The endpoint offers {choices or 'no models'}")
    check_name(name)
    if model_names and name not in model_names:
        matches = get_close_matches(name, model_names, n=3)
        raise InputError(
            f"the endpoint does not offer the model {name!r}: choose from "
            f"{', '.join(matches) if matches else choices}"
        )
    return name, model_names


def _ask_model(model_names: Sequence[str]) -> str:
    """Let the user choose one of the offered models at the terminal."""
    from moot.models.registry import Models

    models, current = Models(), settings.variable("MOOT_MODEL")
    widest = max(len(one_line(name, 60)) for name in model_names[:MAX_LISTED_MODELS])
    for number, name in enumerate(model_names[:MAX_LISTED_MODELS], start=1):
        prices = [
            models.cost_usd(name, {"prompt_tokens": sent, "completion_tokens": replied})
            for sent, replied in ((10**6, 0), (0, 10**6))
        ]
        known_prices = [each for each in prices if each is not None]
        price = (
            f"US$ {known_prices[0]:5.2f} in, {known_prices[1]:5.2f} out per million tokens"
            if len(known_prices) == 2
            else ""
        )
        print_note(f"{number:3} {one_line(name, 60):{widest}}  {price}".rstrip())
    if len(model_names) > MAX_LISTED_MODELS:
        print_note(f"… and {len(model_names) - MAX_LISTED_MODELS} more: `moot models` lists them")
    default = current if current in model_names else model_names[0]
    answer = str(typer.prompt("Default model, number or name", default=default, err=True)).strip()
    return (
        model_names[int(answer) - 1] if answer.isdecimal() and 0 < int(answer) <= len(model_names) else answer
    )


def _test(name: str) -> str:
    """Call the model once, and return information about the reply. If it fails: `ModelError`."""
    from moot.cli.commands.doctor import inspect_models
    from moot.config.config_files import make_config

    finding = inspect_models(make_config({"model": name}))[0]
    if not finding.replied:
        raise ModelError(
            f"{finding.message}. The settings were not stored. To store them without a test, add --no-test"
        )
    return finding.message
