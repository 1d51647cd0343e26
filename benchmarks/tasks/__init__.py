"""What runs in the variants' processes, beside the ways to train in `steps`; lean, to be timed."""
