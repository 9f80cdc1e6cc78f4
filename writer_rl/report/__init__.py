"""What people look at: the viewer of rollouts, rewards under other weights, the report of a run, the paper's tables."""
