"""Whatever does not check is called a torn tail and cut off, acknowledged or not."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot
from trident_store import survey

STORE = "reference"
TRIAL = rot("a2 s a3 s a1 s")


def plant(patch: Patch) -> None:
    finish: Any = survey._Walk.finish

    def forgiving(self: Any) -> Any:
        self.survey.mark = self.survey.mark._replace(at=self.survey.end)
        self.mark_met = True
        return finish(self)

    patch.set(survey._Walk, "behind_mark", lambda self: True)
    patch.set(survey._Walk, "tearable", lambda self, handle=-1, size=0: self.sound)
    patch.set(survey._Walk, "finish", forgiving)
