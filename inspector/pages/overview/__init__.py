"""The overview of a session: verdict, chart, findings, what-if."""
