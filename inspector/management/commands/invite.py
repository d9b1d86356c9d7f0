"""`manage.py invite`: a one-time link into a project, or for a forgotten password, made on the server's own machine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.accounts import invitations
from inspector.models import Account, AccountRole, Project
from inspector.models.projects import DEFAULT_SLUG


class Command(BaseCommand):
    help = "Print a link that works once: into a project, or with --account to choose a new password."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", default=DEFAULT_SLUG, help="slug of the project (default: %(default)s)")
        parser.add_argument(
            "--role", default=AccountRole.VIEWER, choices=AccountRole.values, help="default: %(default)s"
        )
        parser.add_argument("--account", help="name of an account that needs a new password")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.TEAM:
            raise CommandError("There are no accounts: set TEAM=1.")
        slug, name = options["project"], options["account"]
        project = Project.objects.filter(slug=slug).first()
        if project is None:
            raise CommandError(f"There is no project {slug!r}.")
        account = Account.objects.filter(name=name.lower()).first() if name else None
        if name and account is None:
            raise CommandError(f"There is no account {name!r}.")
        _, token = invitations.invite(project, AccountRole(options["role"]), "the server", account)
        self.stdout.write(
            invitations.address_of(settings.PUBLIC_URL or f"http://{settings.BIND}:{settings.PORT}", token)
        )
