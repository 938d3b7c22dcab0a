from __future__ import annotations

import moot


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert moot.__all__ == sorted(moot.__all__)
    for name in moot.__all__:
        assert getattr(moot, name) is not None
