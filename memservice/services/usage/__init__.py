"""What calls of models cost: the ledger, budgets and reports."""
