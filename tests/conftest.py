"""Property tests draw the same examples every time, so that a run can be repeated."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")
