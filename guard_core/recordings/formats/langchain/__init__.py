"""LangChain message lists and LangSmith runs."""
