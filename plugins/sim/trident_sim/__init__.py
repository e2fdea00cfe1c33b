"""A simulated trading day in ITCH 5.0: deterministic, book-consistent, with all 23 message types.

`trident_sim.spec.SimSpec` says what to simulate; `trident_sim.stream` gives it as events or bytes (`Day`,
`simulate_events`, `simulate_bytes`, `iter_frames`), `trident_sim.files.write_day` as a file.
docs/simulator.md.
"""
