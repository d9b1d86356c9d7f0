"""Traces of OpenTelemetry and its relatives."""
