"""Broken protocols, planted one at a time: the crash laboratory finds each, and says by which state."""

from __future__ import annotations

from typing import Any

import pytest

from trident_conformance.crash.mutants import Mutant, mutants

MUTANTS = mutants()
#: These take some seconds each: a compaction or many cuts come before the state that shows them.
SLOW = {
    "flush_of_what_is_not_durable",
    "job_takes_its_table_with_it",
    "manifest_before_the_table",
    "mark_trails_behind_a_rotation",
    "manifest_not_settled_by_recovery",
    "manifest_not_synced",
    "manifest_records_share_a_sector",
    "manifest_removed_before_the_next",
    "manifest_s_name_not_synced",
    "merged_table_not_synced",
    "merged_table_s_name_not_synced",
    "table_not_synced",
    "table_s_name_not_synced",
}


def cases() -> list[Any]:
    return [
        pytest.param(mutant, id=mutant.name, marks=[pytest.mark.slow] if mutant.name in SLOW else [])
        for mutant in MUTANTS
    ]


def test_there_are_enough_and_each_says_what_is_wrong() -> None:
    assert len(MUTANTS) >= 40
    assert {mutant.name for mutant in MUTANTS} >= SLOW
    assert all(mutant.wrong.endswith((".", ")")) for mutant in MUTANTS)
    assert len({mutant.wrong for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", cases())
def test_the_laboratory_catches(mutant: Mutant) -> None:
    """STORE-10 to 12, 15, 16, 20 to 24, 30, 34, 35: each protocol has one of them broken."""
    found = mutant.hunt()
    assert found is not None, f"{mutant.name} survives: the laboratory has a hole"
    # A mutant that no longer fits the code it breaks proves nothing.
    assert not any(each in found.problem for each in ("TypeError", "AttributeError", "NameError")), found
    print(f"{mutant.name} ({mutant.wrong}): {found.state}: {found.problem}")


@pytest.mark.parametrize(
    "name",
    [
        "log_damage_called_torn_tail",
        "log_failed_sync_tried_again",
        "log_folder_not_synced_in_parent",
        "log_half_a_frame_left_behind",
        "log_symbols_after_the_events",
        "log_two_writers",
        "manifest_crc_unchecked",
        "index_crc_unchecked",
        "job_s_blocks_believed",
    ],
)
def test_a_sound_store_passes_the_same_trial(name: str) -> None:
    (mutant,) = (each for each in MUTANTS if each.name == name)
    assert mutant.control() is None


def test_a_planted_mutant_is_taken_out_again() -> None:
    (mutant,) = (each for each in MUTANTS if each.name == "log_acknowledged_before_the_sync")
    assert mutant.hunt() is not None
    assert mutant.control() is None
