"""What the tests, the benches and the demo share: private servers, waiting, faults."""
