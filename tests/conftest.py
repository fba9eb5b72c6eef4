"""Property tests draw the same examples in every run; failed assertions of helpers show values."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.helpers")

settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")
