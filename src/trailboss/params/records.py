"""The parameter records. A field's comment says its unit, why it exists and where it comes from."""

from operator import attrgetter
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cells, Cycles, Price


class LaneParams(Struct, frozen=True, kw_only=True):
    """The timer lane of CIP-1 v3: its market, its agents and its fairness. Spec: CIP-1v3."""

    activation_height: int  # First block under the lane's rules; 0 is never. Spec: CIP-1v3 §13.2. Decision: D-34
    max_cycles_per_fire: Cycles  # Cycles one fire may use in the lane. Spec: CIP-1v3 §10
    # 1 holds timers from before the activation to that cap, 0 leaves those above it waiting. Decision: D-13.
    clamps_gas_limit: int
    # How the lane basefee moves: 0 as written, 1 as EIP-1559 at any elasticity, 2 exponentially. Decision: D-106.
    basefee_rule: int
    # Divisor of the relative distance from the target, in rule 0: 1 clips as written, 8 scales. Decision: D-15.
    alpha: int
    max_change_denominator: int  # The lane basefee moves by at most one part in this many a block. Spec: CIP-1v3 §5
    elasticity: int  # The lane is this many times the use it aims at. Spec: CIP-1v3 §5
    basefee_min: Price  # Floor of the lane basefee, base units per cycle. Decision: D-15
    basefee_max: Price  # Ceiling of the lane basefee, base units per cycle; keeps every product within its width
    joined_max: int  # Due timers that join the lane in one block; the rest join later. Decision: D-51
    # Timers that one block passes over because they do not fit what is left of the lane. Decision: D-54.
    passed_over_max: int
    gba_cycles_max: Cycles  # Cycles of one question to a gas bidding agent. Decision: D-17
    gba_cycles_per_block: Cycles  # Cycles of all questions of one block. Decision: D-17
    # 1 leaves the default fees of a timer open until it fires, 0 freezes them when it is scheduled. Decision: D-106.
    caps_at_fire: int
    fairness_window_blocks: int  # Blocks whose fires count into W(actor). Spec: CIP-1v3 §8
    # Blocks that leave the window in one block at most, so that shortening it is no stall. Decision: D-52.
    window_blocks_left_max: int
    # 1 counts the fires of all actors of a deployer together, 0 those of each actor. Spec: CIP-1v3 §8. Decision: D-106.
    weight_per_deployer: int
    # Blocks over which the network median of fires is smoothed; 1 is as it is. Spec: CIP-1v3 §8. Decision: D-106.
    fires_median_blocks: int
    # Blocks of waiting that add 1 to what a timer's tip is multiplied by; 0 for none. Decision: D-106.
    weight_age_blocks: int
    weight_min: int  # Least W(actor), in parts of 10⁻⁹. Spec: CIP-1v3 §8. Decision: D-11
    weight_max: int  # Greatest W(actor), in parts of 10⁻⁹. Spec: CIP-1v3 §8. Decision: D-11
    # Multiplier of PriorityTier.ECONOMY, in parts of `FeeParams.lane_multiplier_unit`. Spec: CIP-1v3 §7.3.
    tier_economy: int
    tier_standard: int  # Multiplier of PriorityTier.STANDARD, in the same parts. Spec: CIP-1v3 §7.3
    tier_fast: int  # Multiplier of PriorityTier.FAST, in the same parts. Spec: CIP-1v3 §7.3
    tier_urgent: int  # Multiplier of PriorityTier.URGENT, in the same parts. Spec: CIP-1v3 §7.3


class AuctionParams(Struct, frozen=True, kw_only=True):
    """The GBA auction of the first CIP-1: its budget, its agents, its weights and its delays. Spec: CIP-1v1."""

    # TIMER_PROCESSING_BUDGET_CYCLES: cycles of fired handlers in one block. Spec: CIP-1v1 §5, overview.
    budget_cycles: Cycles
    joined_max: int  # Due timers that join the auction in one block; the rest join later. Decision: D-51
    # Timers that one block passes over because they do not fit what is left of the budget. Decision: D-68.
    passed_over_max: int
    gba_cycles_max: Cycles  # Cycles of one question to a gas bidding agent. Decision: D-17
    gba_cycles_per_block: Cycles  # Cycles of all questions of one block. Decision: D-57
    decay: int  # λ: what a score counts in an actor's next weight, in parts of 10⁻⁹. Spec: CIP-1v1 §3
    weight_start: int  # Weight of an actor without a past, and what weights return to, in parts of 10⁻⁹. Decision: D-18
    weight_min: int  # Least weight, in parts of 10⁻⁹. Spec: CIP-1v1 §3. Decision: D-18
    weight_max: int  # Greatest weight, in parts of 10⁻⁹. Spec: CIP-1v1 §3. Decision: D-18
    # Blocks in a row without a fire, while timers wait, that earn the starvation floor. Decision: D-18.
    starvation_blocks: int
    starvation_floor: int  # Least weight of an actor that was starved, in parts of 10⁻⁹. Decision: D-18
    lateness_scale: int  # Blocks of lateness that score one half. Decision: D-18
    # Actors with waiting timers whose weights one block brings up to date, beside those it touches. Decision:
    # D-59.
    actors_weighed_max: int
    delays_max: int  # MAX_ALLOWED_DELAYS: blocks after which a timer is late. Spec: overview. Decision: D-19
    # What happens to a late timer: 0 an event, 1 it goes to the front, 2 it is cancelled. Decision: D-19.
    delay_action: int
    # Cycles at the cycle basefee that the cancelling of a late timer costs its owner. Decision: D-19.
    delay_penalty_cycles: Cycles


class GlobalboxParams(Struct, frozen=True, kw_only=True):
    """Globalbox, the first draft of CIP-5. Governed values change with a governance epoch. Spec: CIP-5old §12."""

    max_fires_per_block: int  # Fires materialized in one block. Spec: CIP-5old §8.3
    max_fires_per_target: int  # Of those, for one target. Spec: CIP-5old §8.3
    # W_age: what a block of age adds to a score, in units of 2⁻³² base units per cycle. Spec: CIP-5old §8.1.
    age_weight: int
    bid_weight: int  # W_bid: what a bid counts for in a score. Spec: CIP-5old §8.1
    min_gas_limit: Cycles  # MIN_GAS_LIMIT_PER_TIMER. Spec: CIP-5old §12
    payload_bytes_max: int  # MAX_PAYLOAD_SIZE. Spec: CIP-5old §12
    max_timers_per_owner: int  # Live timers of one owner. Spec: CIP-5old §12
    max_timers_per_target: int  # Live timers for one target. Spec: CIP-5old §12
    bid_min: Price  # Least bid, whole base units per cycle. Spec: CIP-5old §14
    bid_max: Price  # Greatest bid, whole base units per cycle; Q32.96 has room for 32 bits. Spec: CIP-5old §14
    watch_keys_max: int  # Watch keys of one timer. Spec: CIP-5old §14
    # Bytes of a watch key: an actor's 20, and the beginning of a slot's name. Spec: CIP-5old §14. Decision: D-65.
    watch_key_bytes_max: int
    client_nonce_bytes_max: int  # Bytes of a client nonce. Decision: D-64
    joined_max: int  # Height timers that become candidates in one block; the rest follow later. Decision: D-51
    hits_max: int  # State watches that become candidates in one block; the rest follow later. Decision: D-65
    # Fires without funds that one block passes over when its clean-up budget is spent. Decision: D-63.
    passed_over_max: int
    # Blocks for which an ended timer is remembered, and its client nonce stays taken. Decision: D-64.
    ended_kept_blocks: int
    epoch_blocks: int  # Blocks of a governance epoch. Spec: CIP-5old §12. Decision: D-31
    shards: int  # Parts in which candidates are sorted before they are merged; changes no result. Spec: CIP-5old §15


class FeeParams(Struct, frozen=True, kw_only=True):
    """The two fee markets, cycles and cells, and their genesis values. Decision: D-22."""

    genesis_cycle_basefee: Price  # Base units per cycle in block 1
    genesis_cell_basefee: Price  # Base units per cell in block 1
    min_basefee: Price  # Floor of both basefees, base units per unit. Spec: CIP-3 §2
    max_basefee: Price  # Ceiling of both basefees, base units per unit; keeps every product within 128 bits
    cycles_target: Cycles  # Cycles a block should use. Spec: CIP-3 §2
    cells_target: Cells  # Cells a block should use. Spec: CIP-3 §2
    alpha: int  # Divisor of the relative distance from the target. Spec: CIP-3 §2
    max_change_denominator: int  # A basefee moves by at most one part in this many a block. Spec: CIP-3 §2
    lane_multiplier_unit: int  # What 1.0 is for the lane fee multipliers, which are integers. Decision: D-41


class LimitParams(Struct, frozen=True, kw_only=True):
    """What a block, a transaction, a frame and a value may hold at most."""

    block_cycles_max: Cycles  # Cycles of a block's user transactions. Decision: D-22 (twice the target)
    # Cells of a block's user transactions, or of one of them. Decision: D-85 (a payload of 1 MiB fits one).
    block_cells_max: Cells
    source_bytes_max: int  # Bytes of an actor's source. Decision: D-36
    call_depth_max: int  # Nested actor calls. Source: cowboy-facts §2.3
    return_bytes_max: int  # Bytes a handler may return. Decision: D-37
    event_bytes_max: int  # Bytes of one event's data. Source: cowboy-facts §2.5
    # UTF-8 bytes of an event's name; the public topics have the same bound. Source: cowboy-facts §2.5.
    event_name_bytes_max: int
    slot_bytes_max: int  # Bytes of a storage slot's name
    slot_value_bytes_max: int  # Bytes of a storage slot's value
    scan_rows_max: int  # Rows of one prefix scan. Source: cowboy-facts §2.2
    message_payload_bytes_max: int  # Bytes of the payload of a message or of a deferred transaction
    # Messages that may wait for one target, and deferred transactions of one actor. Source: cowboy-facts §6.
    messages_pending_max: int
    # Deferred transactions of one actor that may wait; 0 for as many as messages. Source: cowboy-facts §4. Decision:
    # D-114.
    deferred_pending_max: int
    # Messages, and deferred transactions, that one block delivers; the rest wait. Decision: D-42, D-88.
    messages_delivered_max: int
    # Cycles limit of a message's delivery and of a deferred transaction. Source: cowboy-facts §4.
    message_cycles: Cycles
    message_cells: Cells  # Cells limit of a message's delivery and of a deferred transaction. Source: cowboy-facts §4
    recursion_depth_max: int  # Python calls deep in one frame. Source: cowboy-facts §6


class TimerParams(Struct, frozen=True, kw_only=True):
    """Timers with a fee payer. The first five are the governed TimerConfig's defaults. Spec: CIP-5 §6.4."""

    max_ttl_blocks: int  # Blocks a timer may live ahead of the present height. Spec: CIP-5 §6.4
    max_cycles_per_fire: Cycles  # Cycles one fire may use. Spec: CIP-5 §6.4
    # Cells one fire may use; flat, the actor does not choose it. Spec: CIP-5 §5.2, CIP-5 §6.4.
    max_cells_per_fire: Cells
    max_timers_per_actor: int  # Live timers of one actor. Spec: CIP-5 §6.4
    gc_cycles_per_block: Cycles  # Cycles a block spends on removing expired and unfunded timers. Spec: CIP-5 §6.5
    gc_cycles_per_timer: Cycles  # Cycles one such removal costs of that budget. Decision: D-23
    lane_cycles_per_block: Cycles  # Cycles of fired handlers in one block. Spec: CIP-5 §6.5, CIP-1 §9
    # Cells of fired handlers in one block; 0 for no bound but that of each fire. Decision: D-80.
    lane_cells_per_block: Cells
    due_examined_max: int  # Due timers one block examines; the rest stay due, in order. Decision: D-39
    # Expired and unfunded timers that one block looks at and leaves once its clean-up budget is spent; beyond
    # them it leaves out payers that cannot pay. Decision: D-78.
    dead_examined_max: int
    payload_bytes_max: int  # Bytes of a timer's payload. Spec: CIP-5 §4.2
    timer_id_bytes_max: int  # Bytes of a timer id wherever one is given. Spec: CIP-5 §3.1
    handler_bytes_max: int  # UTF-8 bytes of a handler's name. Spec: CIP-5 §4.2
    # 1 if an actor may schedule only with the entitlement `timer.schedule`, 0 if it is warned once. Decision:
    # D-91.
    schedule_needs_entitlement: int
    # 1 if only a timer's own actor may pay for it, 0 if the sender may, too. Source: cowboy-facts §4. Decision: D-114.
    payer_is_actor: int
    # 1 if extend_timer refuses a height above the ceiling, 0 if it takes that. Source: cowboy-facts §2.4. Decision:
    # D-114.
    extension_must_fit: int


class CalendarParams(Struct, frozen=True, kw_only=True):
    """Geometry of the three tiers. Spec: CIP-1 §2."""

    ring_size: int  # Buckets of the ring, one per upcoming height. Spec: CIP-1 §2.1
    epoch_length: int  # Blocks of an epoch; about an hour. Spec: CIP-1 §2.2
    epoch_count: int  # Epochs ahead that have a bucket; beyond lies the overflow set. Spec: CIP-1 §2.2


class CostParams(Struct, frozen=True, kw_only=True):
    """Prices of transactions, frames and host calls, in cycles unless a name says cells. Decision: D-21."""

    transaction_base: Cycles  # Every transaction: envelope and signature check. Source: cowboy-facts §5.2
    transfer: Cycles  # A transfer of money, on top of the base. Source: cowboy-facts §5.2
    transfer_cells: Cells  # Cells of a transfer. Source: cowboy-facts §5.2
    deploy: Cycles  # Creating or replacing an actor's code, on top of the base. Source: cowboy-facts §5.3
    # Each byte of the source that is deployed, before it is checked and compiled. Decision: D-101.
    deploy_byte: Cycles
    frame_base: Cycles  # Every frame, before its first instruction. Decision: D-32
    state_read: Cycles  # get_state. Source: cowboy-facts §5.1
    state_write: Cycles  # set_state; the bytes of key and value also cost cells. Source: cowboy-facts §5.1
    state_delete: Cycles  # delete_state. Source: cowboy-facts §5.1 (priced as a write, no cells)
    state_scan_base: Cycles  # scan_state_prefix. Source: cowboy-facts §2.2
    state_scan_row: Cycles  # Per row asked for, found or not. Source: cowboy-facts §2.2
    # schedule_timer and schedule_timer_ex; the payload's bytes also cost cells. Spec: CIP-5 §6.1. Decision: D-08.
    timer_schedule: Cycles
    timer_extend: Cycles  # extend_timer. Spec: CIP-5 §6.1
    timer_cancel: Cycles  # cancel_timer. Spec: CIP-5 §6.1
    timer_index_cells: Cells  # Cells of the index entry a scheduled timer adds: its state key. Spec: CIP-5 §6.1
    message_send: Cycles  # send_message; the payload's bytes also cost cells. Source: cowboy-facts §5.1
    transfer_balance: Cycles  # transfer_balance from a frame
    # emit_event; name and data bytes are cells. Source: cowboy-facts §5.2 (0) and §5.3 (500): ours in between.
    event_emit: Cycles
    keccak_word: Cycles  # keccak256, per 32 bytes begun. Source: cowboy-facts §5.1
    signature_check: Cycles  # verify_signature. Decision: D-21
    randomness: Cycles  # randomness: one hash
    context_read: Cycles  # context, current_block, self_address, actor_owner, gas_left, runtime_config
    actor_call: Cycles  # call_actor, on top of the callee's own frame


class SourceCostParams(Struct, frozen=True, kw_only=True):
    """Cycles of the constructs of actor source, charged a basic block at a time. Decision: D-21, D-32.

    Each field is the price, in cycles, of one construct of that name in the source. Arithmetic 1, call 10, dict 3 and
    list 2 are CIP-3's; the rest is ours, in the same scale.
    """

    name: Cycles
    constant: Cycles
    attribute: Cycles
    subscript: Cycles
    call: Cycles
    keyword: Cycles
    binary_operation: Cycles
    unary_operation: Cycles
    boolean_operation: Cycles
    comparison: Cycles
    conditional: Cycles
    list_display: Cycles
    tuple_display: Cycles
    set_display: Cycles
    dict_display: Cycles
    list_comprehension: Cycles
    set_comprehension: Cycles
    dict_comprehension: Cycles
    generator: Cycles
    formatted_string: Cycles
    formatted_value: Cycles
    lambda_: Cycles
    starred: Cycles
    slice: Cycles
    named_expression: Cycles
    yield_: Cycles
    await_: Cycles
    assignment: Cycles
    augmented_assignment: Cycles
    return_: Cycles
    delete: Cycles
    raise_: Cycles
    assert_: Cycles
    import_: Cycles
    if_: Cycles
    loop: Cycles
    loop_turn: Cycles
    try_: Cycles
    handler: Cycles
    with_: Cycles
    function: Cycles
    function_entry: Cycles
    class_: Cycles
    jump: Cycles
    match: Cycles
    match_case: Cycles
    # The rest prices what built-in functions, methods and operators do by size, before they do it.

    items_free: int  # Items of each operation that its construct has paid for. Decision: D-101
    characters_free: int  # Characters of each operation that its construct has paid for
    item: Cycles  # One item that a built-in function takes from an iterable
    visit: Cycles  # One value that a comparison, a hash or a sort's preparation visits within containers
    text_visit: Cycles  # One value that becomes text, or comes of it: repr, str, format, json
    items_copied: int  # Items of lists and tuples that are copied for a cycle
    items_moved: int  # Items that move by a place for a cycle, as in list.pop(0)
    sort_steps: int  # Comparisons of a sort, n * log2(n), for a cycle
    characters_copied: int  # Characters or bytes that are copied or filled for a cycle
    characters_compared: int  # Characters or bytes that are compared for a cycle
    characters_scanned: int  # Characters or bytes that are searched, changed or decoded for a cycle
    characters_hashed: int  # Bytes that hashlib, hmac and their like take for a cycle
    search_steps: int  # Comparisons of a search without index, needle * text, for a cycle
    pattern_character: Cycles  # One character of a regular expression when it is compiled
    digits: int  # Digits of 30 bits that integers have together, for a cycle
    digit_products: int  # Products of two such digits for a cycle
    digit_squares: int  # Squared decimal digits of an integer that becomes text, or comes of it, for a cycle
    decimal_squares: int  # Squared digits of a Decimal operation for a cycle
    class_made: Cycles  # A class beyond `classes_free` in a frame, or a field of a dataclass
    classes_free: int  # Classes of a frame that their statements have paid for
    frame_allocation_bytes_max: int  # Bytes of one sized result, and of all sized results of a frame together


class GovernanceParams(Struct, frozen=True, kw_only=True):
    """System actors and the band reserved for them. Decision: D-28, D-34."""

    # Addresses 1..=this, as numbers, are system actors and may not pay for timers. Spec: CIP-5 §4.2.
    reserved_band_max: int
    basefee_actor: int  # Number of BASEFEE_SYSTEM_ACTOR, owner of TimerConfig and BasefeeConfig. Spec: CIP-5 §6.4
    governance_actor: int  # Number of the governance actor, emitter of its events
    # Number of the account that holds what mailbox entries of Globalbox have been paid. Decision: D-63.
    escrow_actor: int
    genesis_timestamp_ms: int  # Timestamp of block 0, milliseconds since 1970
    block_interval_ms: int  # Milliseconds between blocks: a block's timestamp follows from its height. Spec: CIP-1 §3


class ChainParams(Struct, frozen=True, kw_only=True):
    """All parameters of a chain. Built by `load_params`, which checks every relation."""

    preset: str  # Name of the preset it was built from; for display
    fees: FeeParams
    limits: LimitParams
    timers: TimerParams
    lane: LaneParams
    auction: AuctionParams
    globalbox: GlobalboxParams
    calendar: CalendarParams
    costs: CostParams
    source: SourceCostParams
    governance: GovernanceParams


def deployment_price(size: int, costs: CostParams) -> Cycles:
    """Return the cycles of a deployment of a source of so many bytes, which pay for its check and compilation.

    Decision: D-101
    """
    return Cycles(costs.deploy + costs.deploy_byte * size)


SYSTEM_ACTORS: Final = ("basefee_actor", "governance_actor", "escrow_actor")
_AT_LEAST: Final = (  # parameters that must be at least as large as another
    ("timers.lane_cycles_per_block", "timers.max_cycles_per_fire"),
    ("timers.gc_cycles_per_block", "timers.gc_cycles_per_timer"), ("fees.genesis_cycle_basefee", "fees.min_basefee"),
    ("fees.genesis_cell_basefee", "fees.min_basefee"), ("fees.max_basefee", "fees.genesis_cycle_basefee"),
    ("fees.max_basefee", "fees.genesis_cell_basefee"), ("limits.block_cycles_max", "fees.cycles_target"),
    ("limits.block_cells_max", "fees.cells_target"), ("timers.max_cycles_per_fire", "costs.frame_base"),
    ("timers.lane_cycles_per_block", "lane.elasticity"), ("lane.max_cycles_per_fire", "costs.frame_base"),
    ("lane.basefee_max", "lane.basefee_min"), ("lane.gba_cycles_max", "costs.frame_base"),
    ("lane.gba_cycles_per_block", "lane.gba_cycles_max"), ("lane.weight_max", "lane.weight_min"),
    ("auction.budget_cycles", "timers.max_cycles_per_fire"), ("auction.gba_cycles_max", "costs.frame_base"),
    ("auction.gba_cycles_per_block", "auction.gba_cycles_max"), ("auction.weight_start", "auction.weight_min"),
    ("auction.weight_max", "auction.weight_start"), ("auction.weight_max", "auction.starvation_floor"),
    ("globalbox.max_fires_per_block", "globalbox.max_fires_per_target"),
    ("globalbox.min_gas_limit", "costs.frame_base"), ("timers.max_cycles_per_fire", "globalbox.min_gas_limit"),
    ("globalbox.bid_max", "globalbox.bid_min"),
    *(("governance.reserved_band_max", f"governance.{name}") for name in SYSTEM_ACTORS),
)  # fmt: skip


def check_relations(params: ChainParams) -> None:
    """Check the relations between parameters.

    Spec: CIP-1 §2.1. Decision: D-10 (a ring shorter than one epoch and a block cannot take a promoted epoch)

    Raises:
        ConfigurationError: Naming the parameter, its value and the rule.
    """
    rules = [
        ("calendar.ring_size", "calendar.epoch_length + 1", params.calendar.epoch_length + 1),
        *((path, least, attrgetter(least)(params)) for path, least in _AT_LEAST),
        ("globalbox.watch_key_bytes_max", "the bytes of an address", Address.WIDTH),
        ("globalbox.hits_max", "globalbox.max_fires_per_block + 1", params.globalbox.max_fires_per_block + 1),
    ]
    if params.timers.lane_cells_per_block:
        rules.append(("timers.lane_cells_per_block", "timers.max_cells_per_fire", params.timers.max_cells_per_fire))
    for path, rule, least in rules:
        value = attrgetter(path)(params)
        if value < least:
            raise ConfigurationError(f"{path} = {value} is too small: it must be at least {rule} = {least}")
    numbers = [getattr(params.governance, name) for name in SYSTEM_ACTORS]
    if len(set(numbers)) < len(numbers):
        named = ", ".join(f"governance.{name} = {number}" for name, number in zip(SYSTEM_ACTORS, numbers, strict=True))
        raise ConfigurationError(f"system actors must differ: {named}")
