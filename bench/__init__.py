"""Speed, as ratios measured in one run. Nothing here is asserted: `make bench` prints it and writes results.json."""
