"""A session knows what its agent calls it, so that it is found when a longer recording of it comes; a recording knows
the newer ones that its sessions went on in."""

import msgspec
import zstandard
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

AT_ONCE = 50  # heads in memory


class Head(msgspec.Struct):
    """What is needed here of the stored head of a session."""

    source_id: str = ""


def name_sessions(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Sessions whose head cannot be read stay without a name, and are stored anew when they come again."""
    session_model, data_model = apps.get_model("inspector", "Session"), apps.get_model("inspector", "SessionData")
    unpack = zstandard.ZstdDecompressor().decompress
    rows = data_model.objects.using(schema_editor.connection.alias).values_list("session_id", "head")
    for key, head in rows.iterator(chunk_size=AT_ONCE):
        try:
            name = msgspec.msgpack.decode(unpack(bytes(head)), type=Head).source_id
        except (msgspec.DecodeError, msgspec.ValidationError, zstandard.ZstdError):
            continue
        session_model.objects.using(schema_editor.connection.alias).filter(pk=key).update(source_id=name[:200])


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0009_texts_without_constraint"),
    ]

    operations = [
        migrations.AddField(
            model_name="session",
            name="source_id",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddField(
            model_name="recording",
            name="newer",
            field=models.ManyToManyField(blank=True, related_name="older", to="inspector.recording"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["source_id"], name="session_source"),
        ),
        migrations.RunPython(name_sessions, migrations.RunPython.noop, elidable=True),
    ]
