from typing import Any


def unavailable() -> str:
    return "later"


def run_case(*a: Any) -> Any: ...
def replay(*a: Any) -> Any: ...
