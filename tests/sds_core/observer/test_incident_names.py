"""How many participants incidents name that leave a view at once."""

from __future__ import annotations

from sds_core.observer.incidents import Incident, IncidentKind, Incidents


def test_many_incidents_at_once_name_few_participants_each() -> None:
    """All are counted."""
    incidents = Incidents()
    for number in range(100):
        incidents.record(
            Incident(
                IncidentKind.UNDELIVERED,
                f"m{number}",
                "alice",
                since_ms=0,
                found_ms=0,
                lacking={f"p{who}": who for who in range(90)},
                lacking_others=5,
            )
        )
    found = incidents.drain()
    assert len(found) == 100
    assert sum(len(one.lacking) for one in found) < 2_500
    assert list(found[-1].lacking) == ["p0", "p1", "p2"]
    assert {len(one.lacking) + one.lacking_others for one in found} == {95}
    assert not incidents.drain()
