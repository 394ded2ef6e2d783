"""The parameters of the three mechanisms that have some of their own."""

from msgspec import Struct

from trailboss.primitives.units import Cycles, Price


class LaneParams(Struct, frozen=True, kw_only=True):
    """The timer lane of CIP-1 v3: its market, its agents and its fairness. Spec: CIP-1v3."""

    activation_height: int
    """First block under the lane's rules; 0 is never. Spec: CIP-1v3 §13.2. Decision: D-34."""
    max_cycles_per_fire: Cycles
    """Cycles one fire may use in the lane. Spec: CIP-1v3 §10."""
    clamps_gas_limit: int
    """1 holds timers from before the activation to that cap, 0 leaves those above it waiting. Decision: D-13."""
    alpha: int
    """Divisor of the relative distance from the target: 1 clips as written, 8 scales as EIP-1559. Decision: D-15."""
    max_change_denominator: int
    """The lane basefee moves by at most one part in this many a block. Spec: CIP-1v3 §5."""
    elasticity: int
    """The lane is this many times the use it aims at. Spec: CIP-1v3 §5."""
    basefee_min: Price
    """Floor of the lane basefee, base units per cycle. Decision: D-15."""
    basefee_max: Price
    """Ceiling of the lane basefee, base units per cycle; keeps every product within its width."""
    joined_max: int
    """Due timers that join the lane in one block; the rest join later. Decision: D-51."""
    passed_over_max: int
    """Timers that one block passes over because they do not fit what is left of the lane. Decision: D-54."""
    gba_cycles_max: Cycles
    """Cycles of one question to a gas bidding agent. Decision: D-17."""
    gba_cycles_per_block: Cycles
    """Cycles of all questions of one block. Decision: D-17."""
    fairness_window_blocks: int
    """Blocks whose fires count into W(actor). Spec: CIP-1v3 §8."""
    window_blocks_left_max: int
    """Blocks that leave the window in one block at most, so that shortening it is no stall. Decision: D-52."""
    weight_min: int
    """Least W(actor), in parts of 10⁻⁹. Spec: CIP-1v3 §8. Decision: D-11."""
    weight_max: int
    """Greatest W(actor), in parts of 10⁻⁹. Spec: CIP-1v3 §8. Decision: D-11."""
    tier_economy: int
    """Multiplier of PriorityTier.ECONOMY, in parts of `FeeParams.lane_multiplier_unit`. Spec: CIP-1v3 §7.3."""
    tier_standard: int
    """Multiplier of PriorityTier.STANDARD, in the same parts. Spec: CIP-1v3 §7.3."""
    tier_fast: int
    """Multiplier of PriorityTier.FAST, in the same parts. Spec: CIP-1v3 §7.3."""
    tier_urgent: int
    """Multiplier of PriorityTier.URGENT, in the same parts. Spec: CIP-1v3 §7.3."""


class AuctionParams(Struct, frozen=True, kw_only=True):
    """The GBA auction of the first CIP-1: its budget, its agents, its weights and its delays. Spec: CIP-1v1."""

    budget_cycles: Cycles
    """TIMER_PROCESSING_BUDGET_CYCLES: cycles of fired handlers in one block. Spec: CIP-1v1 §5, overview."""
    joined_max: int
    """Due timers that join the auction in one block; the rest join later. Decision: D-51."""
    passed_over_max: int
    """Timers that one block passes over because they do not fit what is left of the budget. Decision: D-68."""
    gba_cycles_max: Cycles
    """Cycles of one question to a gas bidding agent. Decision: D-17."""
    gba_cycles_per_block: Cycles
    """Cycles of all questions of one block. Decision: D-57."""
    decay: int
    """λ: what a score counts in an actor's next weight, in parts of 10⁻⁹. Spec: CIP-1v1 §3."""
    weight_start: int
    """Weight of an actor without a past, and what weights return to, in parts of 10⁻⁹. Decision: D-18."""
    weight_min: int
    """Least weight, in parts of 10⁻⁹. Spec: CIP-1v1 §3. Decision: D-18."""
    weight_max: int
    """Greatest weight, in parts of 10⁻⁹. Spec: CIP-1v1 §3. Decision: D-18."""
    starvation_blocks: int
    """Blocks in a row without a fire, while timers wait, that earn the starvation floor. Decision: D-18."""
    starvation_floor: int
    """Least weight of an actor that was starved, in parts of 10⁻⁹. Decision: D-18."""
    lateness_scale: int
    """Blocks of lateness that score one half. Decision: D-18."""
    actors_weighed_max: int
    """Actors with waiting timers whose weights one block brings up to date, beside those it touches. Decision: D-59."""
    delays_max: int
    """MAX_ALLOWED_DELAYS: blocks after which a timer is late. Spec: overview. Decision: D-19."""
    delay_action: int
    """What happens to a late timer: 0 an event, 1 it goes to the front, 2 it is cancelled. Decision: D-19."""
    delay_penalty_cycles: Cycles
    """Cycles at the cycle basefee that the cancelling of a late timer costs its owner. Decision: D-19."""


class GlobalboxParams(Struct, frozen=True, kw_only=True):
    """Globalbox, the first draft of CIP-5. Governed values change with a governance epoch. Spec: CIP-5old §12."""

    max_fires_per_block: int
    """Fires materialized in one block. Spec: CIP-5old §8.3."""
    max_fires_per_target: int
    """Of those, for one target. Spec: CIP-5old §8.3."""
    age_weight: int
    """W_age: what a block of age adds to a score, in units of 2⁻³² base units per cycle. Spec: CIP-5old §8.1."""
    bid_weight: int
    """W_bid: what a bid counts for in a score. Spec: CIP-5old §8.1."""
    min_gas_limit: Cycles
    """MIN_GAS_LIMIT_PER_TIMER. Spec: CIP-5old §12."""
    payload_bytes_max: int
    """MAX_PAYLOAD_SIZE. Spec: CIP-5old §12."""
    max_timers_per_owner: int
    """Live timers of one owner. Spec: CIP-5old §12."""
    max_timers_per_target: int
    """Live timers for one target. Spec: CIP-5old §12."""
    bid_min: Price
    """Least bid, whole base units per cycle. Spec: CIP-5old §14."""
    bid_max: Price
    """Greatest bid, whole base units per cycle; Q32.96 has room for 32 bits. Spec: CIP-5old §14."""
    watch_keys_max: int
    """Watch keys of one timer. Spec: CIP-5old §14."""
    watch_key_bytes_max: int
    """Bytes of a watch key: an actor's 20, and the beginning of a slot's name. Spec: CIP-5old §14. Decision: D-65."""
    client_nonce_bytes_max: int
    """Bytes of a client nonce. Decision: D-64."""
    joined_max: int
    """Height timers that become candidates in one block; the rest follow later. Decision: D-51."""
    hits_max: int
    """State watches that become candidates in one block; the rest follow later. Decision: D-65."""
    passed_over_max: int
    """Fires without funds that one block passes over when its clean-up budget is spent. Decision: D-63."""
    ended_kept_blocks: int
    """Blocks for which an ended timer is remembered, and its client nonce stays taken. Decision: D-64."""
    epoch_blocks: int
    """Blocks of a governance epoch. Spec: CIP-5old §12. Decision: D-31."""
    shards: int
    """Parts in which candidates are sorted before they are merged; changes no result. Spec: CIP-5old §15."""
