"""Measures speed, as ratios within one run. Nothing is asserted: `make bench` prints and writes results.json."""
