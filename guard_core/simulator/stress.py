"""The scenarios of ContextGuard's own tests, with what these assert.

Source: design document 001 (the first 47) and the specification of ContextGuard, section 13 (the other 44 and all
sizes). Where the source gives only a range for the user's messages, its ends are used. Sizes in bytes, windows in
thousands of tokens.
"""

from __future__ import annotations

from guard_core.simulator.flow import Simulation
from guard_core.simulator.scenario import Expected, Scenario
from guard_core.simulator.sized_turns import every_turn, on_turn, sized_simulation

_FIT = Expected(no_overflow=True)
_LOOPLESS = Expected(no_overflow=True, no_loop=True)


def _compacts(injections: int = 1, *, fit: bool = True, loopless: bool = False) -> Expected:
    return Expected(no_overflow=fit, injections=injections, no_loop=loopless)


def _stress(
    name: str, expected: Expected, *simulations: Simulation, since: str = "current", note: str = ""
) -> Scenario:
    return Scenario(name, name.partition("_")[0], simulations, expected, since, note)


def _early(name: str, expected: Expected, *simulations: Simulation, note: str = "") -> Scenario:
    return _stress(name, expected, *simulations, since="early", note=note)


_S, _every, _on = sized_simulation, every_turn, on_turn
DOCUMENT_001 = (
    _early("Stress_200k_NormalConversation", _LOOPLESS, _S(200, 30, 2, 2_000, (167, 168))),
    _early(
        "Stress_200k_ToolHeavy",
        _compacts(),
        _S(
            200,
            20,
            2,
            3_000,
            (50, 51),
            (_every(10_000, 5_000, 20_000),),
            names=("kubectl_get_pods", "kubectl_describe", "kubectl_logs"),
        ),
    ),
    _early(
        "Stress_200k_SingleGiantToolResponse",
        _FIT,
        _S(200, 3, 2, 2_000, (40, 50, 48), (_on(0, 300_000),), names=("kubectl_get_pods",)),
    ),
    _early(
        "Stress_200k_ToolBurst_10Parallel",
        _FIT,
        _S(200, 3, 2, 2_000, (45, 23, 40), (_on(0, *[5_000] * 10), _on(2, 2_000, 10_000))),
    ),
    _early(
        "Stress_200k_NoUsageMetadata",
        _FIT,
        _S(200, 25, 2.5, 2_000, (65, 66), (_every(8_000),), reported=False, names=("kubectl",)),
    ),
    _early(
        "Stress_200k_LongRunning_50Turns",
        _LOOPLESS,
        _S(200, 50, 2.2, 3_000, (107, 108), (_every(5_000, 15_000, every=3),)),
    ),
    _early("Stress_200k_HighTokenRatio", _FIT, _S(200, 15, 3, 5_000, (41, 42), (_every(10_000),))),
    _early(
        "Stress_200k_VeryHighTokenRatio_4x", _FIT, _S(200, 10, 4, 3_000, 42, (_every(20_000),), names=("read_schema",))
    ),
    _early("Stress_200k_LargeSystemPrompt", _FIT, _S(200, 20, 2, 50_000, (29, 30), (_every(5_000),))),
    _early("Stress_200k_MassiveToolBurst", _compacts(), _S(200, 2, 2, 3_000, (40, 35), (_on(0, *[50_000] * 15),))),
    _early(
        "Stress_200k_RepeatedCompactions",
        _compacts(2),
        _S(200, 60, 2, 5_000, (56, 57), (_every(30_000, 10_000, every=2),)),
    ),
    _early(
        "Stress_200k_LateUsageMetadata",
        _FIT,
        _S(200, 5, 2, 2_000, 34, (_every(5_000),), reported=False),
        _S(200, 20, 2.5, 2_000, (35, 36), (_every(10_000),)),
        note="two independent simulations; the source's name suggests one",
    ),
    _early(
        "Stress_200k_100Turns_MixedWorkload",
        _LOOPLESS,
        _S(
            200,
            100,
            2.3,
            5_000,
            (95, 96),
            (_every(50_000, every=10), _every(2_000, 5_000, every=5), _every(1_000, every=3)),
        ),
    ),
    _early("Stress_8k_NormalConversation", _compacts(), _S(8, 20, 1.8, 500, 800)),
    _early("Stress_8k_SmallToolCalls", _compacts(), _S(8, 15, 1.8, 500, 500, (_every(1_000),))),
    _early("Stress_8k_LargeToolResponse", _compacts(fit=False), _S(8, 3, 1.8, 500, (29, 45, 61), (_on(0, 20_000),))),
    _early(
        "Stress_8k_NoUsageMetadata",
        _compacts(),
        _S(8, 25, 2, 300, 800, (_every(1_500),), reported=False, names=("tool",)),
    ),
    _early("Stress_8k_LongRunning_40Turns", _compacts(2), _S(8, 40, 1.8, 500, 600)),
    _early(
        "Stress_8k_ToolBurst",
        _FIT,
        _S(8, 3, 1.8, 500, (38, 19, 28), (_on(0, 3_000, 3_000, 3_000), _on(2, 1_000, 2_000))),
    ),
    _early("Stress_8k_HighTokenRatio", _compacts(), _S(8, 20, 3, 300, 600, (_every(1_000),))),
    _early("Stress_8k_LargeSystemPrompt", _compacts(), _S(8, 15, 1.8, 8_000, 600)),
    _early("Stress_8k_OnlyToolResponses", _compacts(), _S(8, 10, 2, 200, 11, (_every(5_000),))),
    _early("Stress_8k_RapidFireShortMessages", _compacts(2), _S(8, 80, 1.8, 200, 400)),
    _early("Stress_8k_RepeatedCompactions", _compacts(3), _S(8, 40, 1.8, 500, 400, (_every(2_000),))),
    _early("Stress_8k_AlternatingToolAndText", _compacts(2), _S(8, 30, 2, 400, 500, (_every(3_000, every=2),))),
    _early("Stress_CompactionNoInfiniteLoop", Expected(no_loop=True), _S(8, 5, 2.5, 12_000, 500)),
    _early(
        "Brutal_8k_ToolResponseBiggerThanWindow",
        _compacts(fit=False),
        _S(8, 3, 2, 500, (29, 24, 21), (_on(0, 40_000),), names=("db_dump",)),
    ),
    _early("Brutal_8k_EveryTurnExceedsWindow", _compacts(10, fit=False), _S(8, 15, 2, 500, 2_000, (_every(15_000),))),
    _early(
        "Brutal_8k_NoUsageMetadata_HighRatio", _compacts(), _S(8, 20, 2, 500, 700, (_every(2_000),), reported=False)
    ),
    _early(
        "Brutal_8k_NoUsageMetadata_BeyondDefault",
        _compacts(fit=False, loopless=True),
        _S(8, 15, 3, 400, 600, (_every(1_500),), reported=False, names=("tool",)),
    ),
    _early("Brutal_8k_150Turns", _compacts(5, loopless=True), _S(8, 150, 1.8, 300, 300, (_every(1_000, every=5),))),
    _early(
        "Brutal_200k_ConsecutiveMassiveBursts",
        _compacts(),
        _S(200, 10, 2.5, 5_000, 49, (_every(80_000, 30_000),), names=("fetch_all", "analyze")),
    ),
    _early(
        "Brutal_200k_NoUsageMetadata_LongSession",
        _FIT,
        _S(200, 80, 2.5, 3_000, (39, 40), (_every(20_000),), reported=False),
    ),
    _early("Brutal_8k_SystemPromptLargerThanWindow", Expected(no_loop=True), _S(8, 10, 2, 15_000, 400)),
    _early(
        "Brutal_8k_ToolChain_MultipleRoundtrips",
        _compacts(),
        _S(8, 10, 2, 500, 29, (_every(3_000, 2_000, 1_500, 2_500, 1_000),)),
        note="five parallel calls in one round, in spite of its name",
    ),
    _early(
        "Brutal_8k_AlternatingHugeAndTiny",
        _FIT,
        _S(8, 30, 2, 300, (2, 300) * 15, (_every(10_000, every=2, offset=1),)),
    ),
    _early("Brutal_200k_TokenRatio_5x", _FIT, _S(200, 10, 5, 3_000, 59, (_every(15_000),))),
    _early("Brutal_8k_CompactionEveryStep", _LOOPLESS, _S(8, 30, 2, 4_000, 1_200, (_every(4_000),))),
    _early("Brutal_200k_SingleTurnFillsWindow", _FIT, _S(200, 2, 2, 3_000, (52, 18), (_on(0, *[30_000] * 20),))),
    _early("Brutal_8k_CorrectionFactorDrift", _FIT, _S(8, 20, 1.5, 400, 500, (_every(1_500),))),
    _early("Brutal_8k_EmptyToolResponses", _FIT, _S(8, 25, 2, 300, 600, (_every(5, 10, 3),))),
    _early(
        "Brutal_200k_200Turns",
        _LOOPLESS,
        _S(
            200,
            200,
            2.2,
            5_000,
            (74, 76),
            (_every(40_000, every=15), _every(3_000, 8_000, every=7), _every(500, every=4)),
        ),
    ),
    _early("Brutal_8k_VeryLargeModelResponses", _compacts(), _S(8, 20, 2, 300, 300, reply=2_000)),
    _early("Brutal_8k_JSON_Heavy_ToolResponses", _compacts(), _S(8, 15, 3.5, 400, (31, 32), (_every(3_000),))),
    _early(
        "Brutal_8k_SequentialToolChain",
        _compacts(),
        _S(
            8,
            8,
            2,
            500,
            32,
            (_every(2_000, 1_500, 2_500, 1_000, 1_500),),
            sequential=True,
            names=("read_file", "grep_logs", "query_db", "fetch_api", "analyze"),
        ),
    ),
    _early(
        "Brutal_200k_SequentialToolChain_LargeResponses",
        _FIT,
        _S(200, 5, 2, 3_000, 38, (_every(40_000, 20_000, 30_000, 15_000, 5_000),), sequential=True),
    ),
    _early(
        "Brutal_8k_SequentialChain_NoUsageMetadata",
        _compacts(),
        _S(8, 10, 2, 400, 32, (_every(1_000, 800, 1_200),), sequential=True, reported=False),
    ),
)

TOOLS_AND_MEDIA = (
    _stress(
        "Stress_200k_HeavyToolDefinitions",
        _compacts(),
        _S(200, 30, 2, 3_000, (55, 56), (_every(5_000, 8_000),), tools=(20, 16)),
    ),
    _stress(
        "Stress_8k_HeavyToolDefinitions",
        _compacts(),
        _S(8, 20, 2, 400, (23, 24), (_every(1_500),), tools=(10, 8), names=("mcp_tool_0",)),
    ),
    _stress(
        "Brutal_200k_ToolDefinitionsDominateWindow",
        _FIT,
        _S(200, 20, 2.5, 5_000, (49, 50), (_every(10_000, 15_000, 5_000),), tools=(50, 33)),
    ),
    _stress(
        "Brutal_8k_ToolDefinitionsNoUsageMetadata",
        _FIT,
        _S(8, 15, 2, 300, (27, 28), (_every(1_000),), reported=False, tools=(8, 6)),
    ),
    _stress(
        "Brutal_200k_ToolDefinitionsHighRatio",
        _FIT,
        _S(200, 15, 3.5, 4_000, (36, 37), (_every(20_000, 10_000),), tools=(30, 25)),
    ),
    _stress("Stress_200k_InlineImages", _compacts(), _S(200, 15, 2, 2_000, (60, 61), (_every(inline=(100_000,)),))),
    _stress("Stress_8k_InlineSmallImages", _FIT, _S(8, 10, 2, 200, 32, (_every(inline=(10_000,)),))),
    _stress(
        "Brutal_200k_LargeInlineDocuments",
        _FIT,
        _S(200, 3, 2, 2_000, (37, 30, 23), (_on(0, inline=(500_000,)), _on(1, inline=(300_000,)))),
    ),
    _stress(
        "Brutal_200k_MultipleInlinePerTurn",
        _compacts(),
        _S(200, 8, 2, 2_000, 51, (_every(inline=(80_000, 60_000, 90_000)),)),
    ),
    _stress(
        "Brutal_200k_ToolDefsAndInlineImages",
        _FIT,
        _S(200, 20, 2.5, 3_000, (48, 49), (_every(every=3, inline=(50_000,)), _every(5_000)), tools=(15, 12)),
    ),
    _stress(
        "Brutal_200k_ToolDefsAndInlineNoUsageMetadata",
        _FIT,
        _S(
            200,
            15,
            2,
            2_000,
            (41, 42),
            (_every(every=2, inline=(30_000,)), _every(3_000)),
            reported=False,
            tools=(10, 10),
        ),
    ),
    _stress(
        "Brutal_8k_ToolDefsAndInlineCombined",
        _FIT,
        _S(8, 20, 2, 300, (16, 17), (_every(every=4, inline=(5_000,)), _every(800)), reported=False, tools=(5, 5)),
    ),
)

AGENTS = (
    _stress(
        "Stress_200k_KubeAgent",
        _compacts(),
        _S(
            200,
            20,
            2.5,
            5_000,
            (89, 90),
            (_every(15_000, 10_000, 25_000),),
            names=("kubectl_get_pods", "kubectl_describe_pod", "kubectl_get_logs"),
        ),
    ),
    _stress("Stress_8k_KubeAgent", _compacts(), _S(8, 10, 2, 500, 22, (_every(5_000, 3_000, 8_000),))),
    _stress(
        "Brutal_200k_KubeAgent_30Rounds",
        _LOOPLESS,
        _S(200, 30, 2.5, 5_000, (93, 94), (_every(20_000, 15_000, 40_000),), reply=500),
    ),
    _stress(
        "Stress_200k_MixedDebugSession",
        _FIT,
        _S(
            200,
            25,
            2.2,
            3_000,
            (100, 101),
            (_every(20_000, 15_000, every=7), _every(500, every=4), _every(8_000, every=3)),
        ),
    ),
    _stress(
        "Stress_8k_MixedDebugSession",
        _FIT,
        _S(8, 20, 1.8, 500, (78, 79), (_every(3_000, 2_000, every=5), _every(200, every=3))),
    ),
    _stress(
        "Brutal_200k_MixedDebugSession_LongInvestigation",
        _LOOPLESS,
        _S(
            200,
            50,
            2.3,
            5_000,
            (68, 69),
            (
                _every(30_000, 10_000, every=10),
                _every(20_000, every=6),
                _every(2_000, 1_500, every=4),
                _every(5_000, every=3),
            ),
            reply=300,
        ),
    ),
    _stress("Stress_200k_PureToolStorm", _FIT, _S(200, 30, 2, 1_000, (10, 11), (_every(5_000, 5_000),))),
    _stress("Stress_8k_PureToolStorm", _compacts(), _S(8, 20, 1.8, 200, 2, (_every(2_000),))),
    _stress(
        "Brutal_200k_PureToolStorm_HugeResponses", _compacts(), _S(200, 20, 2, 1_000, 4, (_every(50_000, 20_000),))
    ),
    _stress("Brutal_8k_PureToolStorm_50Turns", _compacts(3), _S(8, 50, 2, 200, 3, (_every(3_000),))),
    _stress(
        "Stress_200k_CodingAgent",
        _FIT,
        _S(200, 15, 2.5, 8_000, (77, 78), (_every(8_000, 2_000, 12_000),), reply=400, sequential=True),
    ),
    _stress(
        "Stress_8k_CodingAgent",
        _compacts(),
        _S(8, 10, 2, 800, 26, (_every(3_000, 1_000, 4_000),), reply=200, sequential=True),
    ),
    _stress(
        "Brutal_200k_CodingAgent_DeepRefactor",
        _LOOPLESS,
        _S(
            200,
            25,
            2.5,
            10_000,
            (83, 84),
            (_every(15_000, 5_000, 3_000, 10_000, 4_000, 20_000),),
            reply=600,
            sequential=True,
        ),
    ),
    _stress(
        "Brutal_8k_CodingAgent_NoUsageMetadata",
        _compacts(),
        _S(8, 15, 2, 500, (33, 34), (_every(2_000, 800, 3_000),), sequential=True, reported=False),
    ),
)

OTHER_WINDOWS = (
    _stress("Stress_4k_NormalConversation", _compacts(), _S(4, 20, 1.8, 300, 600)),
    _stress("Stress_4k_WithSmallTools", _compacts(), _S(4, 10, 1.8, 200, 200, (_every(500),))),
    _stress(
        "Brutal_4k_ToolResponseExceedsWindow",
        _compacts(fit=False),
        _S(4, 3, 2, 200, (24, 18, 11), (_on(0, 20_000),)),
    ),
    _stress("Brutal_4k_EveryTurnExceedsWindow", _compacts(10, fit=False), _S(4, 20, 2, 200, 1_000, (_every(8_000),))),
    _stress("Brutal_4k_KubeAgent", _compacts(fit=False), _S(4, 10, 2, 300, 18, (_every(3_000, 2_000, 5_000),))),
    _stress(
        "Brutal_4k_CodingAgent",
        _compacts(fit=False),
        _S(4, 10, 2, 300, 14, (_every(2_000, 500, 3_000),), sequential=True),
    ),
    _stress(
        "Brutal_4k_MixedDebug",
        _FIT,
        _S(4, 15, 2, 200, (23, 24), (_every(3_000, 2_000, every=5), _every(200, every=3))),
    ),
    _stress("Brutal_4k_PureToolStorm", _compacts(3, fit=False), _S(4, 20, 2, 100, 2, (_every(2_000),))),
    _stress("Stress_1M_NormalConversation", _FIT, _S(1_000, 50, 2, 10_000, (130, 131), (_every(10_000),))),
    _stress("Stress_1M_HeavyTools", _FIT, _S(1_000, 30, 2, 10_000, (33, 34), (_every(50_000, 20_000, 30_000),))),
    _stress(
        "Brutal_1M_KubeAgent_ExtremeLongevity",
        _LOOPLESS,
        _S(1_000, 100, 2, 10_000, (61, 62), (_every(30_000, 20_000, 50_000),)),
    ),
    _stress("Brutal_1M_PureToolStorm_MonsterResponses", _FIT, _S(1_000, 50, 2, 5_000, 10, (_every(100_000),))),
    _stress(
        "Brutal_1M_NoUsageMetadata",
        _FIT,
        _S(1_000, 40, 2.5, 5_000, (58, 59), (_every(30_000, 15_000),), reported=False),
    ),
    _stress(
        "Brutal_200k_MagecProductionScenario",
        _LOOPLESS,
        _S(
            200,
            30,
            2.5,
            8_000,
            (93, 94),
            (_every(8_000, 5_000, 15_000, 10_000, every=6), _every(every=4, inline=(80_000,)), _every(8_000, 5_000)),
            reply=400,
            tools=(25, 20),
        ),
    ),
    _stress(
        "Brutal_200k_MagecProductionScenario_NoUsageMetadata",
        _FIT,
        _S(
            200,
            20,
            2.5,
            5_000,
            (37, 38),
            (_every(every=3, inline=(50_000,)), _every(5_000)),
            reported=False,
            tools=(20, 16),
        ),
    ),
    _stress(
        "Brutal_200k_SequentialEscalatingSizes",
        _FIT,
        _S(200, 10, 2, 3_000, 38, (_every(2_000, 5_000, 20_000, 40_000, 60_000),), sequential=True),
    ),
    _stress(
        "Brutal_8k_SequentialEscalatingSizes",
        _compacts(),
        _S(8, 10, 2, 300, 16, (_every(500, 1_500, 3_000, 5_000),), sequential=True),
    ),
    _stress(
        "Brutal_4k_SequentialEscalatingSizes",
        _compacts(fit=False),
        _S(4, 8, 2, 200, 10, (_every(300, 800, 2_000),), sequential=True),
    ),
)

STRESS_SCENARIOS = (*DOCUMENT_001, *TOOLS_AND_MEDIA, *AGENTS, *OTHER_WINDOWS)
