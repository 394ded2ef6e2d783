"""Accounts and money over an overlay. Every movement of money in the chain goes through here. Spec: CIP-5 §6.3."""

from typing import Final

from msgspec.structs import replace

from trailboss.governance.parameters import Read
from trailboss.governance.rules import ECONOMY_KEY
from trailboss.model.actors import Account, declares, decode_account
from trailboss.model.configs import Economy, amount_octets, amount_of, stored
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U128_MAX, Amount
from trailboss.state.keys import account_key, code_key, manifest_key
from trailboss.state.overlay import Overlay

EMPTY_ACCOUNT: Final = Account()


def read_economy(read: Read) -> Economy:
    """Return what the state holds of supply and burned money; `InvariantError` if it does not."""
    economy = stored(read, ECONOMY_KEY, Economy)
    if economy is None:
        raise InvariantError("the state holds no economy record")
    return economy


class Ledger:
    """Accounts as the running block sees them; ``burned`` counts base units that are gone for ever."""

    __slots__ = ("_read", "_read_record", "_sources", "_write", "burned")

    def __init__(self, overlay: Overlay) -> None:
        self._read, self._read_record, self._write = overlay.read, overlay.read_record, overlay.write
        # Text by its hash: whatever is written or taken back, it stays the text of that hash.
        self._sources: dict[bytes, str] = {}
        self.burned = 0

    def find(self, address: bytes) -> Account | None:
        """Return the account, or None."""
        return self._read_record(account_key(address), decode_account)

    def account(self, address: bytes) -> Account:
        """Return the account, or an empty one that `put` would create."""
        return self._read_record(account_key(address), decode_account) or EMPTY_ACCOUNT

    def put(self, address: bytes, account: Account) -> None:
        """Write an account."""
        self._write(account_key(address), account)

    def balance(self, address: bytes) -> Amount:
        """Return the balance in base units; 0 for an account that is not there."""
        account = self.find(address)
        return Amount(0) if account is None else amount_of(account.balance)

    def credit(self, address: bytes, amount: int) -> None:
        """Add to a balance, creating the account if need be.

        Raises:
            InvariantError: If the balance would not fit 128 bits: the whole supply does, so money was made.
        """
        if amount == 0:
            return
        account = self.account(address)
        balance = amount_of(account.balance) + amount
        if balance > U128_MAX:
            raise InvariantError(f"the balance of {Address(address)} would be {balance}, more than 128 bits")
        self._write(account_key(address), replace(account, balance=amount_octets(balance)))

    def debit(self, address: bytes, amount: int) -> None:
        """Take from a balance; ``INSUFFICIENT_BALANCE`` if it holds less."""
        if amount != 0:
            self.put_debited(address, self.account(address), amount)

    def put_debited(self, address: bytes, account: Account, amount: int) -> None:
        """Write an account that has been read, and may be another one now, less an amount; refuses as `debit`."""
        balance = amount_of(account.balance)
        if balance < amount:
            raise Rejection(
                RejectionReason.INSUFFICIENT_BALANCE,
                f"{Address(address)} holds {balance} base units, {amount} are needed",
                account=str(Address(address)),
                required=str(amount),
                available=str(balance),
            )
        self._write(account_key(address), replace(account, balance=amount_octets(balance - amount)))

    def transfer(self, sender: bytes, to: bytes, amount: int) -> None:
        """Move money; refuses as `debit` does."""
        self.debit(sender, amount)
        self.credit(to, amount)

    def code(self, account: Account) -> str:
        """Return an actor's source text; `InvariantError` if the state does not hold it."""
        source = self._sources.get(account.code_hash)
        if source is None:
            octets = self._read(code_key(account.code_hash))
            if octets is None:
                raise InvariantError(f"the state holds no code {account.code_hash.hex()}")
            source = self._sources[account.code_hash] = octets.decode()
        return source

    def store_manifest(self, actor: bytes, manifest: bytes) -> None:
        """Write the manifest that came with an actor's code. Decision: D-91."""
        self._write(manifest_key(actor), manifest)

    def is_entitled(self, actor: bytes, entitlement: str) -> bool:
        """Whether an actor's manifest declares an entitlement."""
        manifest = self._read(manifest_key(actor))
        return manifest is not None and declares(manifest, entitlement)

    def store_code(self, code_hash: bytes, source: bytes) -> None:
        """Write source text under its hash; the same text is stored once."""
        self._write(code_key(code_hash), source)
