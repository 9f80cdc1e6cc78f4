"""Who answers and judges: the offline rules, or a model behind an endpoint."""
