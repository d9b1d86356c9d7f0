"""A pass-through proxy on this machine that records what an agent really sends to its model.

`proxy` passes requests and answers on, byte by byte; `log` writes what went through; `clients` has how each agent
learns the address of its model; `command` runs the agent. Nothing here needs the server, a database or Django.
"""
