"""The blackboard: what the orchestrator notes of a debate, as pure functions of state and notes."""
