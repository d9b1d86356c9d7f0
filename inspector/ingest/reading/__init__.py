"""Reading a recording: what is in it, sent message by message as it is found.

messages.py   what is sent, and how it goes through a pipe
reader.py     reads a file and sends messages
process.py    the same for a large file, in a process of its own (`python -m inspector.ingest.reading`)

A reader's process uses another core than the one that stores, gives its memory back with its end, can be ended at any
moment, and takes nothing with it when it dies of a file. It knows no database and no Django.
"""
