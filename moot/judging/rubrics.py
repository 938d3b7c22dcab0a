"""Functions that choose the rubric for a judge: the criteria and the scale of the scores."""

from collections.abc import Sequence

from moot.config import DebateConfig, PanelJudge, slug
from moot.config.participants import unique_slug
from moot.config.rubrics import Criterion, Rubric, find_rubric, parse_rubric, rubric_names
from moot.prompts.templates import shipped_role
from moot.state.conversation import DebateQuestion, QuestionCriterion
from moot.state.errors import ConfigError

DESIGN = "design"
"""Name of the built-in rubric for software designs."""
DECISION = "decision"
"""Name of the built-in rubric for proposals other than software designs."""


def asks_for_criteria(config: DebateConfig, default: str) -> bool:
    """Return True if a model must choose the criteria for judging the debate.

    A council needs such criteria if a judge has no configured rubric and not all debaters are built-in roles.
    """
    configured_rubrics = [panel_judge.rubric or config.judge.rubric for panel_judge in config.judge.judges()]
    return default == DESIGN and not all(configured_rubrics) and not _has_only_built_in_roles(config)


def rubric_for(
    panel_judge: PanelJudge,
    config: DebateConfig,
    default: str = "debate",
    question: DebateQuestion | None = None,
) -> Rubric:
    """Return the rubric by which a judge scores.

    The rubric is the judge's own, the one in the configuration, or the protocol's default. A council that
    designs no software is judged by the criteria of its question, or by `decision`, unless the judge or
    `judge.rubric` names a rubric.

    Raises:
        ConfigError: the rubric is unknown or invalid.
    """
    configured = panel_judge.rubric or config.judge.rubric
    setting = configured or default
    if not configured and default == DESIGN and not _has_only_built_in_roles(config):
        if criteria := (question or {}).get("criteria"):
            return _rubric_of(criteria)
        setting = DECISION
    if isinstance(setting, dict):
        return parse_rubric(setting, "judge.rubric")
    rubric = find_rubric(setting)
    if rubric is None:  # a rubric file is read only if the operator names it on the command line
        raise ConfigError(
            f"judge.rubric: there is no rubric {setting!r}: use {', '.join(map(repr, rubric_names()))}, list "
            "the criteria under `judge.rubric`, or give a rubric file on the command line"
        )
    return rubric


def _has_only_built_in_roles(config: DebateConfig) -> bool:
    """Return True if all debaters have built-in roles. The debate then designs software."""
    return all(shipped_role(debater) for debater in config.debaters)


def _rubric_of(criteria: Sequence[QuestionCriterion]) -> Rubric:
    """Build a rubric from the debate question's criteria.

    A criterion's id is derived from its name. If that gives no id, or the id of an earlier criterion, the id
    contains the criterion's number.
    """
    name_slugs = [slug(criterion["name"]) for criterion in criteria]
    ids, reserved_ids = list[str](), {key for key in name_slugs if key[:1].isalpha()}
    for number, key in enumerate(name_slugs, 1):
        is_usable = key in reserved_ids and key not in ids
        ids.append(key if is_usable else unique_slug(f"criterion-{number}", reserved_ids))
    return Rubric(
        name="question",
        criteria=tuple(Criterion(id=key, **criterion) for key, criterion in zip(ids, criteria, strict=True)),
    )


def rubric_text(config: DebateConfig, default: str = "debate", question: DebateQuestion | None = None) -> str:
    """Return a prompt section with the criteria of judgement, or `""` without a judge."""
    if not config.judge.enabled:
        return ""
    rubrics = (rubric_for(panel_judge, config, default, question) for panel_judge in config.judge.judges())
    criteria = {each.id: each for rubric in rubrics for each in rubric.criteria}.values()
    lines = (f"- {each.name}{': ' + each.description if each.description else ''}" for each in criteria)
    return "\n".join(["", "# What will be judged at the end", *lines])
