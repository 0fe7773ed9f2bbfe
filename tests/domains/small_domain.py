"""A small declaration for tests."""

from __future__ import annotations

SMALL = """
name = "weather"
letter = "W"
task = "Judge the day."
score_field = "day_score"
predicate = "day"
values = ["bad", "good"]
shares = [0.5, 0.5]
value_meanings = ["Stay in.", "Go out."]

[related]
predicate = "mood"
values = ["sad", "glad"]
table = [[0.8, 0.2], [0.3, 0.7]]

[[fields]]
name = "town"
kind = "choice"
choices = ["Ashby", "Elton"]

[[fields]]
name = "pressure"
kind = "number"
range = [950.0, 1050.0]
decimals = 1
weight = 1.0

[[aspects]]
name = "sky"
sources = ["window"]
[aspects.wordings]
bad = '''
{Dark|Grey} clouds {hang|sit} over [town].
{Rain|Hail} {fell|came down} for [2..4] hours.
{Not a|No} star {shows|is seen}, for the [1.5..2.5]th night.
'''
good = '''
{Bright|Clear} light {fills|floods} [town].
{Sun|Sunshine} {lasted|went on} for [6..9] hours.
{A|One} blue {sky|heaven} since [month].
'''
[aspects.between]
bad-good = '''
{Some|A few} clouds {drift|pass} over [town].
{Light|Thin} haze {comes|goes}.
{Half|Part} of the sky is {open|free}.
'''
"""
