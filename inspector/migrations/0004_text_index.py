"""The text index, which no model describes: FTS5 on SQLite, tsvector on PostgreSQL (inspector/storage/text_index.py)."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SQLITE = (
    "CREATE VIRTUAL TABLE inspector_text USING fts5(words, content='', tokenize=\"unicode61 remove_diacritics 2\")",
    # Words gathered before they are written, in bytes; with the default of 1 MB half the time goes into merging.
    "INSERT INTO inspector_text (inspector_text, rank) VALUES ('hashsize', 16777216)",
)
POSTGRES = (
    "CREATE TABLE inspector_text (event_id bigint NOT NULL, session_id uuid NOT NULL, words tsvector NOT NULL)",
    "CREATE INDEX inspector_text_words ON inspector_text USING gin (words)",
    "CREATE INDEX inspector_text_session ON inspector_text (session_id)",
)


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in POSTGRES if schema_editor.connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement)


def drop(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute("DROP TABLE inspector_text")


class Migration(migrations.Migration):
    dependencies = [("inspector", "0003_gallery")]
    operations = [migrations.RunPython(create, drop)]
