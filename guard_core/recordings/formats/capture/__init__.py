"""Requests and answers as the capture proxy records them."""
