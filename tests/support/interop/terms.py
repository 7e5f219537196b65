"""Names, times and profiles of the tests of interoperation."""

from __future__ import annotations

import pytest

from sds_core.message_channel import Profile
from tests.support.participants import LASTING

EVERYBODY = ("pat", "jon", "pia", "jen")
PYTHON = ("pat", "pia")
JS = ("jon", "jen")

SECOND_MS = 1_000
SETTLE_MS = 3 * SECOND_MS
"""For a broadcast to reach everybody, and for js to process it a second later."""
SWEEP_MS = 10 * SECOND_MS
REPAIR_MS = 360 * SECOND_MS
"""T_req, the wait for a frame that carries the request, T_resp, and a sweep."""

JS_SDS = Profile.js_sds()
PROFILES = {"js_sds": JS_SDS, "spec": Profile.spec()}

LASTING_PROFILES = {"js_sds": JS_SDS, "lasting": LASTING}
"""That of the documents would answer too late."""

both_profiles = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
both_ways = pytest.mark.parametrize(
    ("speaker", "listener"), [("pat", "jon"), ("jon", "pat")]
)
