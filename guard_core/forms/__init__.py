"""Forms: how a policy rewrites events without a summariser, as columns of costs and as messages."""

from __future__ import annotations

from guard_core.forms.base import GONE, Form, JoinedForms, brings_form, form_names, get_form
from guard_core.forms.edits import Arguments, CutToEnds, Removed, Replaced, WithoutCalls
from guard_core.forms.sizes import HERMES_PRUNED, PRUNED, PRUNED_CHARS, capped

__all__ = [
    "GONE",
    "HERMES_PRUNED",
    "PRUNED",
    "PRUNED_CHARS",
    "Arguments",
    "CutToEnds",
    "Form",
    "JoinedForms",
    "Removed",
    "Replaced",
    "WithoutCalls",
    "brings_form",
    "capped",
    "form_names",
    "get_form",
]
