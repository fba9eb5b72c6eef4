"""The lab: draw points in a browser and watch every algorithm think.

``maxmargin lab`` serves a page of Bokeh (the extra ``maxmargin[lab]``) on 127.0.0.1. What it shows
are the steps, fits and proofs of the public estimators; nothing is computed a second way.
"""
