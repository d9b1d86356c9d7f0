"""What fills the context: the requests of a recording or of a replay by class, message and tool, in prompt tokens.

`classes` shares the tokens of events out to classes, `filling` adds them up for any step, `tool_use` says what each
tool took and how long it stayed, `changes` what a request has that the one before had not, `growth` the largest step
from one request to the next, `repeats`
what a request holds twice or out of date.
"""
