"""What a policy comes to in a session: what its requests cost, what its compactions paid back, what was lost.

`sent` are the requests of a recording or a replay, `bill` their tokens and their price, `payback` the price of each
compaction, `cycles` the room that each one made, `losses` what left the requests, `outcome` all of it in one row, and
`comparing` the rows of every policy.
"""
