"""What a list policy may compare: the units of its number and of its limit, and the columns that hold both."""

from __future__ import annotations

from guard_core.trace import Column

TOKENS, MESSAGES, TURNS, GROUPS, ITEMS = "tokens", "messages", "turns", "groups", "items"
# The columns of the comparison by the unit of what is compared; those of tokens are common to all policies.
COMPARED = {
    TOKENS: ("decision_tokens", "threshold"),
    MESSAGES: ("messages_compared", "message_limit"),
    TURNS: ("turns_compared", "turn_limit"),
    GROUPS: ("groups_compared", "group_limit"),
    ITEMS: ("items_compared", "item_limit"),
}
UNIT_COLUMNS = {
    TOKENS: (),
    MESSAGES: (
        Column("messages_compared", "messages that were compared with the limit", MESSAGES, none=-1, label="messages"),
        Column("message_limit", "messages over which the policy acts", MESSAGES, none=-1, label="limit"),
    ),
    TURNS: (
        Column("turns_compared", "turns that were compared with the limit", TURNS, none=-1, label="turns"),
        Column("turn_limit", "turns at which the policy acts", TURNS, none=-1, label="limit"),
    ),
    GROUPS: (
        Column("groups_compared", "groups of messages compared with the limit", GROUPS, none=-1, label="groups"),
        Column("group_limit", "groups over which the policy acts", GROUPS, none=-1, label="limit"),
    ),
    ITEMS: (
        Column("items_compared", "items that were compared with the limit", ITEMS, none=-1, label="items"),
        Column("item_limit", "items at which the policy acts", ITEMS, none=-1, label="limit"),
    ),
}
