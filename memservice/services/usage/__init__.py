"""Usage of models: the ledger, budgets and reports."""
