"""Django's forms of accounts, with this application's names."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, BaseUserCreationForm, UsernameField
from django.core.exceptions import ValidationError

from inspector.models import Account
from inspector.models.accounts import LONGEST_NAME

_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]*")


class SignInForm(AuthenticationForm):
    """Name and password. Every refusal has the same words, so that no answer reveals which names exist."""

    error_messages = {
        "invalid_login": "The name or the password is wrong.",
        "inactive": "The name or the password is wrong.",
    }


class NewAccountForm(BaseUserCreationForm[Account]):
    """A name and a password, typed twice."""

    class Meta:
        model = Account
        fields = ("name",)
        field_classes = {"name": UsernameField}

    def clean_name(self) -> str:
        """The name in lower case, of letters, digits and a few signs. Raises ValidationError."""
        name = str(self.cleaned_data["name"]).lower()
        if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise ValidationError("A name has letters, digits and . _ @ + - and begins with a letter or digit.")
        return name


class ProjectForm(forms.Form):
    """A new project's name."""

    name = forms.CharField(max_length=80, strip=True, label="Name of a new project")

    def clean_name(self) -> str:
        """The name on one line. Raises ValidationError."""
        name = " ".join(str(self.cleaned_data["name"]).split())
        if not name.isprintable() or not name:
            raise ValidationError("A name has printable characters.")
        return name


def attributes(form: Any) -> Any:
    """The form with the class that fields have on every page."""
    for field in form.fields.values():
        field.widget.attrs["class"] = "input"
    return form
