"""The bytes of a recording, read strictly: lines split on newline bytes only, UTF-8 and JSON checked."""
