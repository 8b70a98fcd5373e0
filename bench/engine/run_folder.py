"""A run folder during a measurement: its lock, its journal, its environment, and results.csv."""

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

from bench.analyse.analysed_run import AnalysedRun
from bench.engine.records import Records
from bench.plan.errors import CannotWrite, WrongRequest, refusing
from bench.plan.sweep import Sweep
from bench.store import environment, files, journal, plan, table
from bench.store.environment import Environment
from bench.store.files import Lock

FILES = (environment.ENVIRONMENT, journal.JOURNAL, table.RESULTS)


class RunFolder:
    """The folder of a run: its lock and its environment, the plan and the `records` in its journal, and results.csv.

    From `prepare` to `close`, which must follow even if `prepare` raises, only this process may write into the folder.
    `notices` has a line for each fault of the folder.
    With `extend` the sweep may add to the folder's own.
    """

    def __init__(self, sweep: Sweep, folder: Path, *, extend: bool = False) -> None:
        self.sweep = sweep
        self.folder = folder
        self.notices: list[str] = []
        self.records = Records(sweep, journal.Contents(folder / journal.JOURNAL))
        self._extend = extend
        self._lock = Lock(folder)
        self._made: list[Path] = []
        self._tabulated = 0  # the number of records in results.csv
        self._is_open = False

    def prepare(self) -> None:
        """Make the folder, or read its content; this needs no worker.

        Raises CannotWrite if it can't be written, WrongRequest if it can't be made, if another process writes into it,
        or if it holds another sweep or the results of a newer suite.
        """
        with refusing(f"the run folder {self.folder} can't be written", CannotWrite):
            self._make()
            self._take()
        contents = journal.scan(self.folder)
        self.notices += contents.notices()
        self._plan(contents)
        self.records = Records(self.sweep, contents)

    def _make(self) -> None:
        every = (self.folder, *self.folder.parents)
        self._made = [path for path in every if path in files.MADE or not path.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            is_taken = isinstance(error, FileExistsError | NotADirectoryError)
            reason = "there is a file in its place" if is_taken else error.strerror
            kind = WrongRequest if is_taken else CannotWrite
            raise kind(f"the run folder {self.folder} can't be made: {reason}") from None

    def _take(self) -> None:
        """Lock the folder, and check that an existing journal can be written."""
        self._lock.acquire()
        files.clear(self.folder, FILES)
        if (self.folder / journal.JOURNAL).exists():
            os.close(os.open(self.folder / journal.JOURNAL, os.O_RDWR | os.O_APPEND))

    def _plan(self, contents: journal.Contents) -> None:
        """Check that the sweep is compatible with the folder's own."""
        self._planned = plan.continued(self.sweep, plan.of(contents), self.folder, extend=self._extend)

    def close(self) -> None:
        """Write what is not yet in results.csv, and unlock the folder; one that was made here and is empty goes."""
        try:
            if self._is_open:
                with suppress(WrongRequest):  # the journal has everything
                    self.tabulate()
        finally:
            self._release()

    def _release(self) -> None:
        self._is_open = False
        self._lock.release()
        with suppress(OSError):  # one that isn't empty stays, and so do those above it
            for path in self._made:
                path.rmdir()
        self._made = []

    def open(self, here: Environment) -> None:
        """Open the folder for new records from this environment, after `prepare`.

        Raises WrongRequest if it has results that were measured under other conditions, CannotWrite if it can't be
        written.
        """
        self.here = here
        with refusing(f"the run folder {self.folder} can't be written", CannotWrite):
            self._admit(environment.load(self.folder))
            plan.keep(self._planned, self.records.contents)
            if self.folder in self._made:
                files.hide(self.folder)
            self._is_open = True

    def _admit(self, stored: Environment | None) -> None:
        """Check that all records come from this environment, and write environment.json."""
        if stored and (differing := "; ".join(environment.differences(stored, self.here))):
            raise WrongRequest(f"{self.folder} was measured under other conditions ({differing}); use another folder")
        elsewhere = Counter(record.origin.env_id for record in self.records.contents.records)
        del elsewhere[self.here.env_id]
        if elsewhere:
            counts = ", ".join(f"{count} of {env_id}" for env_id, count in elsewhere.items())
            raise WrongRequest(
                f"{self.folder} holds records of another environment: {counts}; this is {self.here.env_id}; "
                "use another folder"
            )
        environment.save(self.here, self.folder)

    def tabulate(self) -> None:
        """Write results.csv unless it has all records; raises CannotWrite if it can't be written."""
        if self._tabulated < len(self.records.contents.records):
            self.save()

    def save(self) -> None:
        """Write results.csv of what the folder holds; raises CannotWrite if it can't be written."""
        results, kept = self.records.results(), f"; all that was measured is kept in {journal.JOURNAL}"
        with refusing(f"{self.folder / table.RESULTS} can't be written", CannotWrite, kept):
            table.save(results, self.folder)
        self._tabulated = len(self.records.contents.records)

    @property
    def saved(self) -> AnalysedRun:
        """The run for pages and tables, with what its records say: nothing of it is read a second time."""
        whole, of = table.visible(self.records.results()), self.records
        return AnalysedRun(self.folder, contents=of.contents, whole=whole, summary=of.summary)
