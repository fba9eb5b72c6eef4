"""The lab: draw points in a browser and follow every algorithm step by step.

``maxmargin lab`` serves a page of Bokeh (the extra ``maxmargin[lab]``) on 127.0.0.1. It shows the
steps, fits and certificates of the public estimators.
"""
