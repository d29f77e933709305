from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from letopis.web.maps import _Rectangle, squarified


@given(st.lists(st.floats(0.5, 1e6), min_size=1, max_size=60), st.floats(20, 2000), st.floats(20, 2000))
def test_rectangles_have_the_weights_as_areas_and_stay_inside(
    weights: list[float], width: float, height: float
) -> None:
    weights = sorted(weights, reverse=True)
    rooms = squarified(weights, _Rectangle(3.0, 5.0, width, height))
    assert len(rooms) == len(weights)
    scale = width * height / sum(weights)
    for weight, room in zip(weights, rooms, strict=True):
        assert abs(room.width * room.height - weight * scale) <= 1e-6 * width * height
        assert room.x >= 3 - 1e-6
        assert room.y >= 5 - 1e-6
        assert room.x + room.width <= 3 + width + 1e-6
        assert room.y + room.height <= 5 + height + 1e-6


def test_nothing_weighs_nothing() -> None:
    assert squarified([], _Rectangle(0, 0, 10, 10)) == []
