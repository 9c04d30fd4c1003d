"""Events and their listeners."""

import pytest

import calque


def test_events_reach_their_listeners():
    m, heard = calque.monitoring, []
    listeners = [
        (m.register_event_listener, m.unregister_event_listener, lambda: m.record_event("/a", n=1)),
        (
            m.register_event_duration_secs_listener,
            m.unregister_event_duration_listener,
            lambda: m.record_event_duration_secs("/b", 2.0),
        ),
        (
            m.register_event_time_span_listener,
            m.unregister_event_time_span_listener,
            lambda: m.record_event_time_span("/c", 1.0, 2.0),
        ),
        (
            m.register_scalar_listener,
            m.unregister_scalar_listener,
            lambda: m.record_scalar("/d", 3.0),
        ),
    ]

    def listener(*values, **details):
        return heard.append((*values, *details.items()))

    for register, unregister, report in listeners:
        register(listener)
        report()
        unregister(listener)
        report()
        with pytest.raises(ValueError, match="is not a listener"):
            unregister(listener)
    assert heard == [("/a", ("n", 1)), ("/b", 2.0), ("/c", 1.0, 2.0), ("/d", 3.0)]
    m.register_event_listener(listener)
    m.clear_event_listeners()
    m.record_event("/e")
    assert len(heard) == 4
