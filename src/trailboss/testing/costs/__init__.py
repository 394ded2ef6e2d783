"""What handlers and lines cost: tables that add up to the receipts, baselines, flame graphs. Decision: D-109."""
