"""A simulated day made by agents that trade on a matching engine: docs/simulator.md.

`trident_agents.spec.AgentSpec` says what to simulate; `trident_agents.day.AgentDay` gives it as events or
bytes, and what became of the agents.
"""
