"""`moot models`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from moot.graph.cli import options as shared
from moot.graph.cli.screen.output import print_json, print_text
from moot.state.errors import InputError


def models(
    words: Annotated[
        str | None, Argument(metavar="WORDS", help="Only names in which this occurs.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        Option("--model", "-m", metavar="NAME", help="Ask the endpoint of this model in --config."),
    ] = None,
    config: shared.ConfigOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """List what the endpoint offers: that of OPENAI_BASE_URL, else OpenAI, or that of a model of --config."""
    import asyncio

    import httpx

    from moot.graph.cli.screen.output import complain
    from moot.graph.operator_config import usual_config
    from moot.nodes.models.offers import offered_rows
    from moot.nodes.models.registry import Models, access_to

    known = Models(usual_config(config, {}, complain).models)
    access, url = access_to(model or "", known.settings_of(model or "")), known.base_url(model or "")
    try:
        offered = [str(row["id"]) for row in asyncio.run(offered_rows(access))]
    except (httpx.HTTPError, ValueError) as error:
        raise InputError(
            f"{url} lists no models: {error or type(error).__name__}. Is it running, and is the address that "
            "of the API, which often ends in /v1?"
        ) from error
    names = [name for name in offered if (words or "").casefold() in name.casefold()]
    if as_json:
        return print_json({"base_url": url, "models": names})
    print_text("\n".join(names) if names else f"{url} offers no such model")
