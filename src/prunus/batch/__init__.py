"""Many jobs, one line each, that go on where a run was stopped."""
