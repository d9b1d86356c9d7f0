"""Projects: whom sessions and everything around them belong to, and managers that answer for one project only.

    Session.objects.of(project)        the sessions of a project; what is created there belongs to it
    Event.objects.in_session(session)  the rows that hang on one session
    Session.objects.row(session)       the row in hand, for an update under a condition
    recording.sessions                 the rows that hang on a row in hand
    Session.objects.filter(…)          raises Unscoped
    Session.unscoped                   of all projects: for jobs, sweeps and checks of the data folder alone

Texts (`Payload`) belong to no project: they are found by the hash that an event names, never by a page's own query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.db import models

from inspector.models.prepared import Select, Slot

DEFAULT_SLUG, DEFAULT_NAME = "default", "Default"  # of the one project in local mode


Row = TypeVar("Row", bound=models.Model)


class Unscoped(RuntimeError):
    """A query names no project."""


class Project(models.Model):
    """Sessions, recordings and settings that one group of people shares. In local mode there is one."""

    slug = models.SlugField(max_length=60, unique=True)  # in addresses and commands
    name = models.CharField(max_length=200)
    created = models.DateTimeField(auto_now_add=True)
    # How long and how much is kept; None: without limit. What is beyond is deleted; what is beyond the quota, refused.
    keep_days = models.IntegerField(null=True)
    keep_bytes = models.BigIntegerField(null=True)  # of recordings
    quota_bytes = models.BigIntegerField(null=True)  # of recordings

    def __str__(self) -> str:
        return self.name


_DEFAULT = Select(Project.objects.filter(slug=DEFAULT_SLUG))


def default_project(using: str = "default") -> Project:
    """The project of local mode. Migrations make it; it is made again where it is gone."""
    project: Project | None = _DEFAULT.row() if using == "default" else None  # asked for at every request
    if project is None:
        project, _ = Project.objects.using(using).get_or_create(slug=DEFAULT_SLUG, defaults={"name": DEFAULT_NAME})
    return project


class ScopedRows(models.QuerySet[Row]):
    """Rows of one project or one session; what is created here belongs to it."""

    owner: Mapping[str, Any] = {}  # column and value of new rows

    def create(self, **values: Any) -> Row:
        """A new row of the same project or session."""
        return super().create(**values, **self.owner)

    def bulk_create(self, objs: Iterable[Row], *args: Any, **options: Any) -> list[Row]:
        """New rows of the same project or session."""
        rows = list(objs)
        for row in rows:
            for column, value in self.owner.items():
                setattr(row, column, value)
        return super().bulk_create(rows, *args, **options)

    def _clone(self) -> ScopedRows[Row]:
        """Django clones rows wherever they are narrowed: what is created of those has the same owner."""
        clone: ScopedRows[Row] = super()._clone()  # type: ignore[misc]  # the stubs know no method of this name
        clone.owner = self.owner
        return clone


class Scoped(models.Manager[Row]):
    """Raises Unscoped for every query that begins neither with `of` nor at a row in hand (`recording.sessions`)."""

    def get_queryset(self) -> models.QuerySet[Row]:
        """The rows of the related row; a manager of a class of rows has none."""
        if not isinstance(getattr(self, "instance", None), models.Model):
            name = self.model.__name__
            raise Unscoped(f"a query over {name} names no project: begin it with {name}.objects.of(project)")
        return super().get_queryset()

    def scoped(self, column: str, owner: Any) -> ScopedRows[Row]:
        """The rows of a project or session, which may be given by its primary key."""
        rows: ScopedRows[Row] = ScopedRows(self.model, using=self._db).filter(**{column: getattr(owner, "pk", owner)})
        rows.owner = {column: getattr(owner, "pk", owner)}
        return rows


class OwnedManager(Scoped[Row]):
    """Of rows with a project of their own."""

    def of(self, project: Project | int | Slot) -> ScopedRows[Row]:
        """The rows of a project, which may be given by its primary key."""
        return self.scoped("project_id", project)

    def row(self, row: Row) -> models.QuerySet[Row]:
        """The row in hand, to be changed under a condition."""
        return models.QuerySet(self.model, using=self._db).filter(pk=row.pk)


class SessionPartManager(Scoped[Row]):
    """Of rows that hang on a session, and belong to its project."""

    def of(self, project: Project | int | Slot) -> models.QuerySet[Row]:
        """The rows of all sessions of a project."""
        return models.QuerySet(self.model, using=self._db).filter(session__project=project)

    def in_session(self, session: Any) -> ScopedRows[Row]:
        """The rows of one session, which may be given by its primary key."""
        return self.scoped("session_id", session)


class Owned(models.Model):
    """A row with a project of its own. Rows that point to one another belong to the same."""

    # Without an index of its own: the indexes of each table begin with it where that helps, and SQLite would take this
    # one, which leaves out next to nothing, before a better one.
    project = models.ForeignKey(Project, models.PROTECT, related_name="+", db_index=False)

    objects = OwnedManager()
    unscoped = models.Manager()

    class Meta:
        abstract = True


class SessionPart(models.Model):
    """A row that hangs on a session."""

    objects = SessionPartManager()
    unscoped = models.Manager()

    class Meta:
        abstract = True
