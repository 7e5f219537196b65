"""A trace full of names that try to break whatever prints it."""

from __future__ import annotations

from sds_core.observer.incidents import Incident, IncidentKind
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.tracing import Conclusion, Evidence, Person, Step, Subject
from sds_core.trace.trace import Trace

NAMES = (
    "end\nP1->>T: forged",
    'bob" as T\n@enduml\n!include /etc/passwd',
    "%%{init: {}}%% ; note over T: forged",
    "\x1b[31mred\x1b[0m",
    "\u202eright to left",
    "[bold]markup[/bold]",
    "<script>alert(1)</script>",
    "** -- // __ ~~ ..",
    "#59; #quot; <&file>",
    "",
    "loop every minute",
    "x" * 512,
    "\ud800".encode("utf-8", "replace").decode(),
)


def hostile_trace(
    names: tuple[str, ...] = NAMES, places: tuple[str, ...] = NAMES
) -> Trace:
    """Return a trace in which each name stands everywhere.

    Args:
        names: Names of participants.
        places: Channel, message and taps.
    """
    text = "its causal history names the message"
    steps = [
        Step(number, "named", text, by, to, tap, names)
        for number, by in enumerate(names)
        for to, tap in (("", places[0]), (names[0], ""), ("", ""))
    ]
    conclusion = Conclusion(0, "deliveries.lost", "5", "not delivered", names)
    incident = Incident(
        IncidentKind.UNDELIVERED,
        places[0],
        names[1],
        0,
        0,
        lacking=dict.fromkeys(names, 0),
        named_by=list(names),
    )
    return Trace(
        "sds",
        Evidence(
            Subject(places[0], places[1]),
            {"sender": names[2], "named_sender": names[3]},
            0,
            steps,
            0,
            [Person(name) for name in names],
            [incident],
            [conclusion],
            conclusion,
            [("no frame since", names)],
            places,
        ),
        dict.fromkeys(places, ()),
        DEFAULTS,
    )
