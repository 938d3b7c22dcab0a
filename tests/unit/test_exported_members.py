from __future__ import annotations

import graph


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert graph.__all__ == sorted(graph.__all__)
    for name in graph.__all__:
        assert getattr(graph, name) is not None
