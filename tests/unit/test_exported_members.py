from __future__ import annotations

import moot
from moot.state import errors


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert moot.__all__ == sorted(moot.__all__)
    for name in moot.__all__:
        assert getattr(moot, name) is not None


def test_every_error_can_be_caught_by_its_public_name() -> None:
    raised = {name for name, each in vars(errors).items() if isinstance(each, type)}
    assert raised <= set(moot.__all__)
