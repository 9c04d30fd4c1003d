"""Places of boxes and ways of lines."""

import itertools

import pytest

from calque.explaining.layout import Box, place, ranked


def boxes(n):
    return [Box(50.0, 20.0 + 5 * k) for k in range(n)]


def apart(made):
    for a, b in itertools.combinations(made, 2):
        beside = a.x + a.width <= b.x or b.x + b.width <= a.x
        assert beside or a.y + a.height <= b.y or b.y + b.height <= a.y


def test_each_box_is_below_what_it_needs():
    assert ranked(4, [(0, 1), (1, 3), (0, 3)]) == [0, 1, 0, 2]
    assert ranked(0, []) == []
    with pytest.raises(ValueError, match="does not come later"):
        ranked(2, [(1, 0)])


def test_boxes_do_not_lie_on_each_other():
    made = boxes(9)
    edges = [(0, 2), (1, 2), (2, 3), (2, 4), (0, 5), (3, 5), (4, 6), (1, 7), (7, 8), (5, 8)]
    placed = place(made, edges)
    apart(made)
    assert all(made[a].y + made[a].height < made[b].y for a, b in edges)
    assert all(b.x >= 0 and b.x + b.width <= placed.width for b in made)
    assert placed.height == max(b.y + b.height for b in made)


def test_lines_go_from_box_to_box_past_the_rows_between():
    made = boxes(4)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    placed = place(made, edges)
    for (a, b), points in zip(edges, placed.lines):
        assert points[0] == (made[a].centre, made[a].y + made[a].height)
        assert points[-1] == (made[b].centre, made[b].y)
        assert [p.y for p in points] == sorted(p.y for p in points)
    long = placed.lines[3]
    assert len(long) == 2 + 2 * 2
    for p in long[1:-1]:
        assert all(not b.x < p.x < b.x + b.width or not b.y < p.y < b.y + b.height for b in made)


def test_nothing_to_place():
    placed = place([], [])
    assert (placed.width, placed.height, placed.lines) == (0.0, 0.0, [])


def test_very_long_lines_go_straight():
    made = boxes(30)
    edges = [*itertools.pairwise(range(30)), (0, 29)]
    placed = place(made, edges)
    assert len(placed.lines[-1]) == 2
    apart(made)
