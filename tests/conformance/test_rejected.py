"""The suite can fail: it rejects engines that are wrong, each for its own fault, and passes those that are
not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PATHS = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])

#: kind -> wrong engine -> a test that must reject it (part of its id).
WRONG: dict[str, dict[str, str]] = {
    "feed": {
        "KnowsEverything": "test_foreign_bytes",
        "ReadsAtOnce": "test_the_factory_reads_nothing",
        "DropsAShortChunk": "test_any_size_gives_the_same",
        "HandsOutWhatItMayBeWrittenTo": "test_what_a_chunk_is",
    },
    "book": {
        "KeepsPriority": "vector=replace-same-price",
        "CancelsToTheRest": "vector=cancel-carries-what-is-removed",
        "PrintsAtTheMessagesPrice": "vector=execution-with-price-reduces-at-display-price",
        "DropsThePartialBatch": "test_as_the_reference",
        "TakesUnknownsInSilence": "vector=unknown-reference",
        "StopsInAHalt": "vector=halt-keeps-applying",
        "LosesPriorityOnAPartialFill": "vector=partial-execution-keeps-priority",
        "MatchesWhatCrosses": "vector=crossing-add-is-never-matched",
        "FirstReferenceWins": "vector=duplicate-add-evicts",
        "ZeroIsNoReference": "vector=reference-zero-is-a-reference",
        "LosesTheMpidOnReplace": "vector=replace-same-price",
        "ComparesPricesUnsigned": "vector=negative-prices-sort-below-zero",
        "KeepsAViewOfEvents": "test_no_view_is_kept",
        "TradesByTheMessagesLocate": "vector=locate-of-another-symbol",
    },
    "parser": {
        "ReadsPastTheEnd": "test_the_last_byte_before_a_forbidden_page",
        "WritesBeyondTheCount": "test_out_in_the_middle_of_an_array",
        "NumbersOnlyWhatItKnows": "vector=unknown-type",
        "ForgetsWhereItIs": "test_the_caller_sets_seq_and_position",
        "SharesHaveASign": "vector=widest-numbers",
        "CorrectsLetters": "vector=letters-stand-as-they-are",
        "SwallowsTheTail": "vector=torn-message",
    },
    "store": {
        "ForgetsACrc": "test_never_wrong_data_in_silence",
        "ShowsWhatCameLater": "TestSnapshots::test_isolation",
        "LetsTwoWrite": "test_one_writer_at_a_time",
        "LosesTheLateSymbols": "test_a_directory_that_grows",
        "FindsEverythingWell": "test_never_wrong_data_in_silence",
        "TakesAnyOrder": "test_seq",
        "ForgetsWhereAnOrderCameFrom": "test_get",
    },
    "query": {
        "OffByOne": "vector=bounded-repeat]",
        "SeesThePadding": "vector=anchored-end-before-padding",
        "TakesTheFirstBranch+spans": "vector=longest-branch-wins",
        "EndsBeforeALastNewline": "vector=end-is-never-before-a-last-lf",
        "HeedsNoCase": "vector=case-folding]",
        "MatchesFromTheStart": "vector=literal-anywhere",
        "RefusesWhatIsLong": "test_what_every_engine_takes",
    },
    "sequence": {
        "TakesUnknownForFalse": "vector=null-price",
        "ComputesInFloats": "vector=great-numbers",
        "SkipsByOrdersOnly": "TestConditions::test_as_the_reference",
        "KnowsNoLazyOnes": "vector=lazy]",
        "OneRowIsInManyMatches": "vector=find-all-goes-on-behind-the-match",
        "LeavesOutEmptyMatches": "vector=empty-matches",
        "LooksAtTheClockAfterwards": "vector=within-shortens",
        "WaitsForNobody": "vector=absence]",
        "WaitsWithEmptyMatches": "vector=absence-is-not-asked-of-empty-matches",
        "RefusesWithoutAWord": "test_what_is_not_linear",
        "KeepsOrdersThatAreFilled": "vector=an-order-ends-when-its-shares-are-gone",
        "LosesReplacedOrders": "vector=an-order-goes-on-under-its-new-reference",
        "ForgetsBetweenBatches": "test_any_split",
        "GivesAllAtTheEnd+streaming": "test_given_when_they_are_final",
        "StartsAfreshFromAState+streaming": "test_saved_and_loaded_between",
        "TakesAnyState+streaming": "test_states_that_do_not_fit",
        "KeepsWhatIsOver+streaming": "test_orders_that_ended_take_no_room",
    },
}
#: Books that match wrongly, held by the tests of the capability.
WRONG_MARKETS: dict[str, str] = {
    "GrowsInPlace": "vector=replace-loses-its-place",
    "LosesPriorityOnAFill": "vector=pro-rata]",
    "FillsOrKillsSome": "vector=fill-or-kill]",
    "SharesOutRoundedUp": "vector=pro-rata]",
    "IcebergsKeepTheirPlace": "vector=iceberg-goes-to-the-tail",
    "ForgetsTheMarketsPolicy": "vector=self-trade-both",
    "CrossesWithoutAReference": "vector=nearest-to-the-reference",
    "StopsTriggerTwice": "vector=stops-trigger-in-order",
    "StopsFireBackwards": "vector=stops-trigger-in-order",
    "StopsDoNotTrail": "vector=trailing]",
    "BlocksArePartial": "vector=cpptrader-all-or-none",
    "BlocksAreStuck": "vector=mass-cancel-sets-blocks-free",
    "SlipsWithoutLimit": "vector=market]",
    "MassCancelsEveryone": "vector=mass-cancel]",
    "ForgetsTheRest": "test_all_at_once_with_little_room[book=wrong_engines:ForgetsTheRest-vector=iceberg",
}
#: Long tests that no engine above is meant for.
LEFT_OUT = "cut_at_every or kill or recovery or torn_tail or filters or busy_day or any_width or many_at_once"
LEFT_OUT += " or Matching or wild_events or labels_as or every_start or open_starts or Sql"
RIGHT = {
    "feed": "RightFeed",
    "book": "RightBook+sharded+match",
    "parser": "RightParser+tables+encode+lenient",
    "store": "RightStore+portable_format+filesystem",
    "query": "RightQuery+spans+first+ends+sets",
    "sequence": "RightSequences+streaming",
}


def conformance(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit status and, by engine, the suites of the command run in `folder` with these arguments."""
    done = subprocess.run(
        [sys.executable, "-m", "trident_conformance", "--json", "--quick", "--tb=no", *arguments],
        capture_output=True, text=True, cwd=folder, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["ok"] == (done.returncode == 0), done.stderr
    return done.returncode, {entry["engine"].split(":")[-1]: entry["suites"] for entry in answer["engines"]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRONG)
def test_each_wrong_engine_is_rejected(kind: str, tmp_path: Path) -> None:
    names = [*WRONG[kind], RIGHT[kind]]
    factories = ",".join(f"wrong_engines:{name}" for name in names)
    status, engines = conformance(tmp_path, f"--{kind}", factories, "-k", f"test_{kind} and not ({LEFT_OUT})")
    assert status == 1
    right = engines.pop(RIGHT[kind].split("+")[0])[kind]
    assert (right["failed"], right["skipped"]) == (0, 0), right["failures"]
    assert right["passed"] > (19 if kind == "feed" else 20)
    for name, fault in WRONG[kind].items():
        failures = engines[name.partition("+")[0]][kind]["failures"]
        assert any(fault in failure for failure in failures), (
            f"{name} was not rejected by {fault}: {failures}"
        )


@pytest.mark.slow
def test_each_wrong_market_is_rejected(tmp_path: Path) -> None:
    names = [*WRONG_MARKETS, "RightBook"]
    factories = ",".join(f"wrong_engines:{name}+match" for name in names)
    named = sorted({fault[7:].rstrip("]") for fault in WRONG_MARKETS.values() if fault.startswith("vector")})
    chosen = f"(one_by_one and ({' or '.join(named)})) or (little_room and iceberg)"
    status, engines = conformance(tmp_path, "--book", factories, "-k", chosen)
    assert status == 1
    right = engines.pop("RightBook")["book"]
    assert (right["failed"], right["skipped"], right["passed"] > 14) == (0, 0, True), right["failures"]
    for name, fault in WRONG_MARKETS.items():
        failures = engines[name]["book"]["failures"]
        assert any(fault in failure for failure in failures), (
            f"{name} was not rejected by {fault}: {failures}"
        )


@pytest.mark.slow
def test_a_wrong_book_is_rejected_in_the_line(tmp_path: Path) -> None:
    status, engines = conformance(
        tmp_path, "--book", "wrong_engines:DropsThePartialBatch,wrong_engines:RightBook", "-k", "batch-333"
    )
    assert status == 1
    assert engines["DropsThePartialBatch"]["pipeline"]["failed"] == 1
    assert engines["RightBook"]["pipeline"] == {
        **engines["RightBook"]["pipeline"], "passed": 1, "failed": 0, "skipped": 0
    }  # fmt: skip


def test_an_unknown_engine_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "trident_conformance.plugin",
         "--pyargs", "trident_conformance", "--book", "no-such-book"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert "no book engine named 'no-such-book'" in done.stderr
    assert "installed: " in done.stderr
