"""The known facts of order books, measured on a day of any source: `trident facts`, docs/facts.md.

`trident_facts.measure.measure_file` gives them for a file; `trident_facts.track.Track` is what they are
measured on.
"""
