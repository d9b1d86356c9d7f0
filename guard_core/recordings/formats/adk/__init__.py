"""Google's Agent Development Kit: session JSON and its databases."""
