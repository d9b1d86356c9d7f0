"""OpenAI's APIs: Chat Completions and Responses."""
