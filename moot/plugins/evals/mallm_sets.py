"""Question sets of MALLM (Becker et al. 2025), a JSON list of examples, as questions of an evaluation set.

An example has `example_id`, `inputs`, `context` and `references`. MALLM writes choices as lines such as
`A) text` below the question, and names the right one in `references` by its letter.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase

from moot.state.entries import JsonObject
from moot.state.errors import ConfigError

_CHOICE = re.compile(r"^([A-Z])\) (.*)$")


def mallm_rows(path: Path, text: str) -> Iterator[tuple[int, JsonObject]]:
    """Yield each example as a question, with its number in the list.

    A reference that is not the letter of a choice becomes the `reference` that a model compares answers with.

    Raises:
        ConfigError: The file is not a JSON list of MALLM's examples.
    """
    try:
        examples = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: the file is not JSON: {error}") from error
    for number, example in enumerate(examples if isinstance(examples, list) else [examples], start=1):
        if not isinstance(example, dict) or not {"example_id", "inputs", "references"} <= example.keys():
            raise ConfigError(
                f"{path}:{number}: a .json file is read as a question set of MALLM, a list of objects with "
                "`example_id`, `inputs` and `references`: write other items as .jsonl or .csv"
            )
        parts = {key: example.get(key) or [] for key in ("inputs", "context", "references")}
        if not all(
            isinstance(part, list) and all(isinstance(each, str) for each in part) for part in parts.values()
        ):
            raise ConfigError(f"{path}:{number}: `inputs`, `context` and `references` must be lists of texts")
        yield number, _question(example["example_id"], **parts)


def _question(example_id: object, inputs: list[str], context: list[str], references: list[str]) -> JsonObject:
    lines = "\n".join(inputs).rstrip().split("\n")
    choices: list[str] = []
    while lines and (match := _CHOICE.match(lines[-1])):
        choices.insert(0, match[2])
        first_letter = match[1]
        lines.pop()
    row: JsonObject = {"id": str(example_id), "context": "\n\n".join(context)}
    letters = [re.split(r"\)", each, maxsplit=1)[0].strip() for each in references]
    if len(choices) > 1 and first_letter == "A" and letters and letters[0] in ascii_uppercase[: len(choices)]:
        return {**row, "question": "\n".join(lines).strip(), "choices": choices, "answer": letters[0]}
    return {**row, "question": "\n".join(inputs).strip(), "reference": "\n\n".join(references)}
