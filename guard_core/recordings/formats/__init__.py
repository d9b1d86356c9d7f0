"""The formats: a module or a folder for each agent, framework or API that writes recordings."""
