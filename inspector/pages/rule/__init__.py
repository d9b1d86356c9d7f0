"""The rule of the agent that wrote a recording, beside what the recording shows."""
