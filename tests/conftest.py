"""Property tests draw the same examples in every run; failed assertions of helpers show values."""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.helpers")

# How long an example takes says nothing: code may have to be compiled, and machines are busy.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
