"""The measurements of tests/bench/run."""
