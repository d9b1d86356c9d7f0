"""gptme's conversations, and the views that its compactions leave beside them."""
