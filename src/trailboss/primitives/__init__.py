"""The words everything else is written in: units, octets, exact arithmetic, errors."""
