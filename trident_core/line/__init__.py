"""What is behind the ring: the thread or process of the store, the ladder, the spill, faults, pinning.

docs/line.md has the rules. Nothing here touches a book: the only thing that both sides share is the ring.
"""
