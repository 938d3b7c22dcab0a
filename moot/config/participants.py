"""Configuration of debaters: personas, people, and the ids that they may have."""

import json
import re
import unicodedata
from collections.abc import Container
from functools import lru_cache
from itertools import chain, count
from typing import Any

from pydantic import Field, field_validator, model_validator

from moot.config.memory_config import PerspectiveOverride
from moot.config.model_settings import check_model_name
from moot.config.section import Section, duplicates
from moot.state.entries import ENTRY_ID
from moot.state.verdict import SYNTHESIS, TIE, Rule

SLUG, SLUG_LENGTH = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}"), 40
_WORD = re.compile(r"[a-z0-9]+")
_LETTER_NAME = re.compile(
    r"(?:LATIN SMALL LETTER (?:[A-Z]+ )*?(?=[A-Z]{1,2}\b)|(?:HIRAGANA|KATAKANA) LETTER (?:SMALL )?"
    r"|HANGUL SYLLABLE )([A-Z]+)(?: WITH .*)?"
)
"""Pattern that finds a letter's ASCII form in its Unicode name. For example, it finds `O` in `LATIN SMALL
LETTER O WITH STROKE`."""
_SOUNDS = (
    "аa бb вv гg дd еe жzh зz иi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ыy эe юiu яia іi "
    "єie ґg ђdj јj љlj њnj ћc џdz αa βb γg δd εe ζz ηe θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υu φph "
    "χkh ψps ωo þth ðd"
)
_LETTERS = {each[0]: each[1:] for each in _SOUNDS.split()}
"""ASCII transliterations of Cyrillic letters, Greek letters, `þ` and `ð`."""
INTERJECTION_SPEAKERS = frozenset({"user", "moderator"})
"""Ids of speakers who may interject, besides debaters and guests."""
RESERVED_IDS = INTERJECTION_SPEAKERS | {"moot", "judge", "tools", "system", TIE, SYNTHESIS}
"""Ids that debaters and guests may not have, because Moot or its prompts use them."""
HUMAN = "human"
"""Value of a debater's `model` setting if a person takes the debater's turns."""
NAME_CHARS = 80
"""Maximum length of a display name, in characters."""
MAX_REQUESTED_DEBATERS = 50
"""Maximum number of debaters that one request may specify. All debaters of a step are called before the
operator's limits are checked again."""
MAX_REQUESTED_JUDGES = 20
"""Maximum number of panel judges that one request may specify. The whole panel is called for a verdict,
also if a limit of the operator is reached."""
MAX_REFERENCE_CHARS = 40_000
"""Maximum total length of one debater's reference documents, in characters. The documents are stored in the
state with the configuration."""


MODEL_ROLES = frozenset({"developer", "function", "tool"})
"""Names of roles in model APIs, which an interjection's speaker may not have. `RESERVED_IDS` lists further
forbidden names. The messages of other agents have the speaker `assistant`."""
RESERVED_NAMES = (RESERVED_IDS - {"user"}) | {
    *("background", "everyone", "note", "program", "summary", "topic", "you"),
    *("note-by-the-program", "tool-result", "the-person-who-opened-the-debate"),  # labels in prompts
}
"""Slugs of display names that debaters may not use, because Moot gives them another meaning. A debater may be
called `user`, as in imported chats: prompts label the messages of Moot's user in other words."""
_JOINERS = "\u200c\u200d"
"""Invisible characters that emoji and Persian text require."""


def plain_name(name: str) -> str:
    """Return a display name on one line, without invisible characters.

    Control characters and line breaks become spaces. Text-direction characters count as invisible. The
    joiners in `_JOINERS` are kept.
    """
    kinds = ((char, unicodedata.category(char)) for char in name)
    kept = (
        " " if kind in ("Cc", "Zl", "Zp") else char
        for char, kind in kinds
        if kind not in ("Cf", "Cs") or char in _JOINERS
    )
    return " ".join("".join(kept).split())


def unreserved_name(name: str) -> str:
    """Convert the name of a speaker in an imported transcript to a valid display name."""
    bare = ENTRY_ID.sub("", plain_name(name)).strip(" []():*_")[:NAME_CHARS] or "Speaker"
    return f"{bare} (speaker)" if slug(bare) in RESERVED_NAMES else bare


def can_interject(speaker: str) -> bool:
    """Return True if a speaker with this id may interject."""
    known = SLUG.fullmatch(speaker) and not ENTRY_ID.fullmatch(speaker)
    return bool(known) and speaker not in (RESERVED_NAMES | MODEL_ROLES) - INTERJECTION_SPEAKERS


def slug(name: str) -> str:
    """Convert a display name to a slug of lower-case ASCII words joined by `-`.

    Latin, Greek, Cyrillic, kana and Hangul are transliterated. Characters of other scripts are dropped: the
    reading of a Chinese character depends on the language.
    """
    latin = "".join(map(_transliterate, unicodedata.normalize("NFKC", name).casefold()))
    return "-".join(_WORD.findall(latin))[:SLUG_LENGTH].strip("-")


@lru_cache(maxsize=4096)
def _transliterate(char: str) -> str:
    """Return the ASCII transliteration of a lower-case character, or `-` if there is none."""
    if char.isascii() or unicodedata.combining(char):
        return char if char.isascii() else ""
    base = unicodedata.normalize("NFD", char)[0]
    if base in "ъь":
        return ""
    match = _LETTER_NAME.fullmatch(unicodedata.name(char, ""))
    return _LETTERS.get(base) or (match[1].lower() if match else "-")


def unique_slug(base_slug: str, used_slugs: Container[str], start: int = 2, length: int = SLUG_LENGTH) -> str:
    """Return `base_slug`, with a number appended if `used_slugs` contains it."""
    numbered = (f"{base_slug[: length - len(str(n)) - 1].rstrip('-')}-{n}" for n in count(start))
    return next(each for each in chain([base_slug], numbered) if each not in used_slugs)


class ReferenceDocument(Section):
    """Document that a debater can quote and cite as a reference.

    Passages of the document are retrieved and can be cited.
    """

    name: str = Field(default="text", min_length=1, max_length=60)
    """Name that debaters use to cite the document."""
    text: str = Field(min_length=1)
    """Text of the document. `@FILE` reads it from a file."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return {"text": data} if isinstance(data, str) else data


class DebaterConfig(Section):
    """Configuration of one debater. Every field except `name` is optional."""

    id: str = ""
    """Slug that identifies the debater in stored data and in commands. Empty: derived from `name`. Set it to
    keep the id if the name changes."""
    name: str = Field(min_length=1, max_length=NAME_CHARS)
    """Display name of the debater."""
    role: str = ""
    """Area of expertise of the debater, such as `security engineer`. The name of a shipped role selects that
    role's prompts."""
    stance: str = ""
    """Position that the debater defends on the topic. Empty: the debater chooses one."""
    persona: str | dict[str, str] = ""
    """Description of the debater for prompts, given as text or as a mapping from titles to texts. For
    example, `{What is at stake for you: her licence}`. `@FILE` reads a text from a file."""
    flip_conditions: tuple[str, ...] = ()
    """Findings that would make this debater change its mind. Crux rooms of a `dialogue` test whether they
    hold."""
    reference_documents: tuple[ReferenceDocument, ...] = ()
    """Documents that this debater can cite, each given as `{name, text}` or as plain text. Relevant passages
    are added to the debater's prompts and can be cited."""
    identity: str = Field(default="", max_length=80)
    """Name that identifies this debater across several debates. With `memory.cross_debate`, prompts include
    the arguments that this debater made under the same name in earlier debates."""
    model: str | None = None
    """Name of the model that writes this debater's messages. `None`: the debate's model. `human`: a person,
    who is asked for each turn."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of this debater's model. `None`: the debate's."""
    fallbacks: tuple[str, ...] | None = None
    """Fallback models that are tried in the listed order if this debater's model fails. `None`: the
    debate's."""
    system_prompt: str = ""
    """System prompt for this debater. It replaces Moot's role prompts. `@FILE` reads it from a file."""
    summary_prompt: str = ""
    """Prompt for summaries of this debater's perspective. It replaces the built-in prompt. `@FILE` reads it
    from a file."""
    clarification_prompt: str = ""
    """Prompt for this debater's questions before the first round. It replaces the built-in prompt. `@FILE`
    reads it from a file."""
    perspective: PerspectiveOverride | None = None
    """Settings that override `memory.perspectives` for this debater."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the debater may call. The tools are `search`, `read_file`, `list_files`,
    `search_debate` and `calculator`. The first three need a folder in `context`. Tools of MCP servers have
    names such as `docs__search`."""
    tool_call_limit: int = Field(default=10, ge=1, le=100)
    """Maximum number of tool calls that the debater may make in one turn. Raise it for research in large
    folders. Every tool call adds a model call."""

    def description(self, *, with_id: bool = False) -> str:
        """Return the debater's role and stance as text, or `""`. A role equal to the name is left out.

        `with_id`: begin with the id, unless it follows from the name.
        """
        known = ", ".join(filter(self.adds_to_name, (self.id if with_id else "", self.role)))
        return "; ".join(filter(None, (known, f"stance: {self.stance}" if self.stance else "")))

    def adds_to_name(self, part: str) -> bool:
        """Return True if a part, such as the role, is neither empty nor equal to the name."""
        return bool(part) and (slug(part) or part) != (slug(self.name) or self.name)

    @field_validator("reference_documents")
    @classmethod
    def _check_length(cls, value: tuple[ReferenceDocument, ...]) -> tuple[ReferenceDocument, ...]:
        size = sum(len(document.text) for document in value)
        if size > MAX_REFERENCE_CHARS:
            raise ValueError(
                f"the reference documents have {size} characters: shorten them to at most "
                f"{MAX_REFERENCE_CHARS}"
            )
        return value

    @property
    def is_human(self) -> bool:
        """Return True if a person takes the turns of this debater."""
        return self.model == HUMAN

    @model_validator(mode="before")
    @classmethod
    def _fill_id(cls, data: object) -> object:
        if isinstance(data, dict) and not data.get("id") and isinstance(data.get("name"), str):
            return {**data, "id": slug(data["name"])}
        return data

    @field_validator("name", mode="before")
    @classmethod
    def _normalize_name(cls, value: object) -> object:
        return plain_name(value) if isinstance(value, str) else value

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if slug(value) in RESERVED_NAMES:
            raise ValueError(f"the name {value!r} is reserved: choose another name")
        if ENTRY_ID.search(value.casefold()):
            raise ValueError(f"{value!r} looks like the id of a message: choose another name")
        return value

    @field_validator("id")
    @classmethod
    def _check_id(cls, value: str) -> str:
        if not value:
            raise ValueError(
                "no id can be derived from this name, because it has no letters a-z or digits: set `id`"
            )
        if not SLUG.fullmatch(value):
            raise ValueError(
                f"{value!r} is not a valid id: use at most 40 of the characters a-z, 0-9, - and _"
            )
        if value in RESERVED_IDS or ENTRY_ID.fullmatch(value):
            raise ValueError(f"the id {value!r} is reserved: choose another id")
        return value

    _model_name = field_validator("model")(check_model_name)

    @model_validator(mode="after")
    def _check_tools(self) -> "DebaterConfig":
        if self.is_human and self.tools:
            raise ValueError(f"{self.name!r} is a person and cannot call tools: remove `tools`")
        if twice := duplicates(self.tools):
            raise ValueError(f"duplicate tools: {', '.join(twice)}")
        return self


class ClarificationsConfig(Section):
    """Settings for the questions that debaters may ask a person before the first round."""

    enabled: bool = False
    """True if debaters may ask a person questions before the first round. The run waits for the replies, so
    leave this off if nobody can reply."""
    max_per_debater: int = Field(default=3, ge=1, le=20)
    """Maximum number of questions that each debater may ask per question round."""
    rounds: int = Field(default=1, ge=1, le=10)
    """Maximum number of rounds in which debaters may ask questions. Later rounds include the earlier replies.
    Asking ends early after a round without questions."""


class PlannedInterjection(Section):
    """Prepared message that is inserted into the debate after a fixed number of turns."""

    after: int = Field(ge=0)
    """Number of turns after which this message is inserted into the debate. 0 inserts it before the first
    turn."""
    text: str = Field(min_length=1)
    """Text of the message that is inserted into the debate."""
    speaker: str = "moderator"
    """Author of the inserted message. Give `moderator`, a debater's id or a guest's slug."""


RubricSource = str | dict[str, Any]
"""Name of a shipped rubric, path of a rubric file, or content of a rubric."""


def _check_numbers_in_rubric(rubric: RubricSource | None) -> RubricSource | None:
    """Check that a rubric contains no NaN or infinity, and return the rubric."""
    try:
        json.dumps(rubric, allow_nan=False)
    except ValueError as error:
        raise ValueError("the rubric contains a number that is not finite: give a finite number") from error
    except TypeError:
        pass  # other checks report values of other types
    return rubric


class PanelJudge(Section):
    """Configuration of one judge on a panel. Fields that are not set take their values from `judge`."""

    id: str = Field(pattern=SLUG.pattern)
    """Slug that identifies this judge in verdicts."""
    model: str | None = None
    """Name of the model that this judge uses. `None`: `judge.model`."""
    rubric: RubricSource | None = None
    """Rubric for this judge, given as the name of a shipped rubric or as the rubric's content. `None`:
    `judge.rubric`."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of this judge's model. `None`: `judge.temperature`."""

    _model_name = field_validator("model")(check_model_name)
    _rubric = field_validator("rubric")(_check_numbers_in_rubric)


class JudgeConfig(Section):
    """Configuration of the judge, or of a panel of judges."""

    enabled: bool = True
    """True if a judge gives a verdict at the end of the debate."""
    model: str | None = None
    """Name of the model that the judge uses. `None`: the debate's. Prefer a model of another family than the
    debaters' models."""
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    """Sampling temperature of the judge's model. `None`: the provider's default."""
    rubric: RubricSource | None = None
    """Rubric that the judge uses. Give the name of a shipped rubric (`debate`, `decision`, `design`,
    `answers`), a file on the command line, or the rubric's content. `None`: the protocol's."""
    instruction: str = ""
    """Additional instructions that are included in the judge's prompt."""
    summary: PerspectiveOverride | None = None
    """Settings for summarising the final round of a council debate for the judge. They override
    `memory.perspectives`. The judge reads the summary if the round does not fit into its prompt."""
    blind: bool = True
    """True if the judge's prompt shows neutral labels instead of the debaters' names. The labels also replace
    names in the text of messages. Switch it off if names carry meaning."""
    swap: bool | None = None
    """True if the judge scores the debaters twice, the second time in reverse order. This nearly doubles the
    cost. `None`: the protocol decides. `council`, `vote` and `dialogue` judge once, the others twice."""
    panel: tuple[PanelJudge, ...] = ()
    """Judges on the panel. Empty: one judge."""
    rule: Rule = "mean"
    """Name of the rule that combines the verdicts of the panel's judges."""
    quorum: int | None = Field(default=None, ge=1)
    """Number of judges who must give a verdict. With fewer, the panel makes no decision. `None`: more than
    half of the panel. Raise it if every judge's opinion counts."""
    test: bool | None = None
    """True if debaters test the decision before the debate ends, and the judge corrects it. Costs one call
    for each member of a council, otherwise one call, and one for the answer. `None`: only in a `council`."""
    reply: int = Field(default=2000, ge=200)
    """Minimum number of tokens reserved for a judge's reply. Raise it if verdicts fail because replies are
    cut off."""

    _model_name = field_validator("model")(check_model_name)
    _rubric = field_validator("rubric")(_check_numbers_in_rubric)

    @field_validator("panel")
    @classmethod
    def _check_panel(cls, value: tuple[PanelJudge, ...]) -> tuple[PanelJudge, ...]:
        ids = [panel_judge.id for panel_judge in value]
        if duplicates(ids):
            raise ValueError(f"the judge ids {ids} are not unique: give each judge a different id")
        return value

    def judges(self) -> tuple[PanelJudge, ...]:
        """Return the judges on the panel, or a single judge if no panel is configured."""
        return self.panel or (PanelJudge(id="judge"),)
